"""Tests of the cockpit."""
