"""Writing whisper_tui into the configuration of agent clients, taking it back, and proving that it works."""
