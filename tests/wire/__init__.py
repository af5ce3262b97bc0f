"""Tests of the socket and what crosses it."""
