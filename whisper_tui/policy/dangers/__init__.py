"""What a command could do that a rule for its program alone does not mean: destroy, run other code, write, leave."""
