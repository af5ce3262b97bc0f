"""What the processes of a run use, where they listen, and whether they wait for somebody: read, never changed."""
