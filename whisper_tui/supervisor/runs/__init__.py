"""Runs of commands: queued, started, followed, paused, read, and removed once nobody keeps them."""
