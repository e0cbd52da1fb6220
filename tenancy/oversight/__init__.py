"""What operators ask of everybody's account, and what stays on record of it: no content."""
