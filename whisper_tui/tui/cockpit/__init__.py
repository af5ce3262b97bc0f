"""The main screen: the list of calls, the selected call in full, and what is said over everything."""
