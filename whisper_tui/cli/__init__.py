"""The command line: the only place that wires the layers together."""
