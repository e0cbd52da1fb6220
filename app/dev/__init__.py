"""What only development on one machine needs. Nothing imports it but the command line."""
