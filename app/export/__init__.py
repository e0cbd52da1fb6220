"""Everything about a person as one archive, and one conversation as a file."""
