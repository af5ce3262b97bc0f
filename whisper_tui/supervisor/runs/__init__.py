"""Runs of commands: scheduling, start, monitoring, pause, output and retention."""
