"""The journal: events are written before their effect, searched, and checked for changes."""
