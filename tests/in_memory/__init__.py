"""A supervisor in memory, and the agents and commands that tests play on it."""
