"""The screens over the cockpit: history and replay, rules, settings."""
