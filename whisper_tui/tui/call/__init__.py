"""One call in full, and what its run does."""
