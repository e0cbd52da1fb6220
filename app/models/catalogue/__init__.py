"""Which models there are, what they can do, and what they cost."""
