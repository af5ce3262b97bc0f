"""Calls before they run: admission, resolution, judgement, decision, and handover to agents that start them."""
