"""Install whisper_tui into the configuration of agent clients, uninstall it, and verify that its hook works."""
