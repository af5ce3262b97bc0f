"""The little languages that commands take as an argument: what a script of sed or awk could do beside printing."""
