"""Evidence: some events of a journal in one file, and the check of such a file with nothing else (decision 41)."""
