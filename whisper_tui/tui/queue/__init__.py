"""The list of calls: its sections, rows, groups and filter."""
