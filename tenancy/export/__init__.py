"""Everything that is kept of a person, table by table, read in bounded pieces."""
