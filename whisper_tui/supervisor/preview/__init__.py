"""Previews: a command runs on overlays of the real files; what it changed is applied exactly, and can be undone."""
