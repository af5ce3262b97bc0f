"""Exports of calls: JSON lines, terminal recordings and reports, made from the API's answers (decision 8)."""
