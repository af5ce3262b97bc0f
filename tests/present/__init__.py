"""Tests of text for people."""
