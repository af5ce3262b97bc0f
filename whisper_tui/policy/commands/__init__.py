"""Commands and what they really run, once programs that only run others are taken away; and those that only read."""
