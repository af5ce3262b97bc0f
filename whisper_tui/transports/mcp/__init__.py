"""Agents that speak MCP, over pipes and over HTTP."""
