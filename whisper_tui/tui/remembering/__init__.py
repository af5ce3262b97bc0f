"""What decides without a human, in words: remembered approvals and rules."""
