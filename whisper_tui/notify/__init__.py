"""Notifications: when to notify the person, with which text, and over which channel."""
