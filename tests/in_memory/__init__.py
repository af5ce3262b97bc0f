"""A supervisor in memory, and the agents and commands that tests act out with it."""
