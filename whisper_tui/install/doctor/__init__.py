"""Proving that what was installed into a client really holds its commands back."""
