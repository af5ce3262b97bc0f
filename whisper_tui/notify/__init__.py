"""Notifications: when to notify the person, with what text, and by which channel."""
