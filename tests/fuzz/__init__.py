"""Fuzzing of every input: each endpoint answers or closes, and the supervisor keeps running."""
