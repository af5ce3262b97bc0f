"""A paired phone: the page on which it decides, and the process that serves the page."""
