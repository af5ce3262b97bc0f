"""What is known about calls as files: JSON lines, terminal recordings and reports, made of what the port tells."""
