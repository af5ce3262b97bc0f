"""Calls before they run: admission, judgement, decision, and handover to agents that start them."""
