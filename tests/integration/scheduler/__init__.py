"""The scheduler, on a real database."""
