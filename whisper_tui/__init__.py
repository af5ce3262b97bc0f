"""A terminal cockpit in which a human supervises every command that AI agents want to run."""

__version__ = "0.1.0"
