"""Output of commands as lines to look at: found in the stream by offset, read only where they are shown."""
