"""What agents see: tools with exact schemas and results."""
