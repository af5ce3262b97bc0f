"""The process that stands between the supervisor and one command: standard library only."""
