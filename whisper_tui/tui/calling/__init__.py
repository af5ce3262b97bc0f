"""Calling a person who looks elsewhere, because something waits for a decision."""
