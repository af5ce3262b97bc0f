"""Places: commands that run on other machines, in containers and as jobs."""
