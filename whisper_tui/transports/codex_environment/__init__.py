"""Codex's environment: its commands, typed input and changes of files become calls before anything happens."""
