"""Agents' own shells: a hook asks before each command, and a ticket runs an approved command."""
