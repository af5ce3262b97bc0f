"""The subcommands, one file a family."""
