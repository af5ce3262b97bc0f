"""The port over a local socket: server, client, autostart."""
