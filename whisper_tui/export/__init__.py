"""Exports of calls through the API: JSON lines, terminal recordings and reports (decision 3)."""
