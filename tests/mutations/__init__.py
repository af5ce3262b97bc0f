"""Attacks on who may decide and on what was approved, and the proof that each defence is what stops them."""
