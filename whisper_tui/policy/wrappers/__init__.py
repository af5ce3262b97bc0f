"""Commands that run other commands: what really runs once they are taken away."""
