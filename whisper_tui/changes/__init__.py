"""Changes of files as a plan: read from a view or kept beforehand, applied exactly, undone; whole after any crash."""
