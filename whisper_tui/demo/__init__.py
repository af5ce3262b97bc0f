"""A scripted agent whose calls are real: for `whisper-tui demo`, for the pictures, and for tests of the cockpit."""
