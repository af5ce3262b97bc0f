"""May it run: pure functions from a call, rules and memory to a verdict."""
