"""Figures about how the package is cut and written, their goals, and the bounds that keep what was reached."""
