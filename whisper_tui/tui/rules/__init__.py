"""Rules and standing approvals, which decide without a human."""
