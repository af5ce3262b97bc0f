"""Tests of the values and the fold."""
