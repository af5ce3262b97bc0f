"""Everything is killed at random instants while agents work; afterwards the journal and the files have to agree."""
