"""The proxy between an editor and an agent that speak the Agent Client Protocol."""
