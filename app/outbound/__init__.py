"""Requests to addresses that people name: only to public ones, bounded, without redirects."""
