"""Runs it: queue, pool, keepers, journal, recovery."""
