"""Commands that only read: what may run without being asked, earned option by option."""
