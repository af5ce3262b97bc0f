"""Calls of the past: which are looked for, where they come from, and their output played again."""
