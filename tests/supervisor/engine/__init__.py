"""The engine: real keepers, real processes, real files."""
