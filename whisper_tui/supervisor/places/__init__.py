"""Commands at places: other machines, containers, jobs and Pods, where only the keeper runs."""
