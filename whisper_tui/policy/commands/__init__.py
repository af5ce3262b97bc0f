"""Commands and what they really run, once the programs that only run others are taken away."""
