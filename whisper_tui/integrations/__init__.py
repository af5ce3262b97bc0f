"""Agent frameworks for Python: the supervised tools in their forms, and their own tools behind the queue."""
