"""The process between the supervisor and one command. It uses the standard library only."""
