"""The little languages that commands take as an argument: what a script of sed, awk or jq could do beside printing."""
