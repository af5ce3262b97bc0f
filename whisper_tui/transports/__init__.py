"""The transports between agents and the supervisor: hooks, MCP, `whisper-tui call`, and the agent loop."""
