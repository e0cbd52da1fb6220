"""Connections to tool servers: opened once, shared with care, closed by whoever opened them."""
