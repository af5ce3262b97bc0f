"""Tests of what agents see."""
