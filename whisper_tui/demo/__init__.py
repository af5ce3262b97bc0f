"""The demo: scripted agents whose calls are real, for `whisper-tui demo`, for screenshots and for tests."""
