"""Calls and everything about them as immutable values, without input or output."""
