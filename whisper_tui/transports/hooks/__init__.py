"""How the agents' own shells come in: their hooks ask before a command, and a ticket runs what was approved."""
