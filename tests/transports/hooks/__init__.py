"""Tests of the agents' own shells."""
