"""Commands that only look: what may run without being asked, earned option by option."""
