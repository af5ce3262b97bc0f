"""The main screen: what is selected, what changed, what is said over everything."""
