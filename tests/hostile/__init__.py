"""Text of agents, made to act or to hide, through everything that shows it."""
