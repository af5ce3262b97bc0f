"""Commands of the cockpit: each file holds the table of a group and the functions that carry it out."""
