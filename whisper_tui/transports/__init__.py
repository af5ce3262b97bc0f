"""The ways in which agents reach the supervisor: hooks, MCP, `whisper-tui call`, and the agent loop."""
