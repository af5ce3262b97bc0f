"""Tests that drive the real agent clients, headless, with a scripted model and a human who is played."""
