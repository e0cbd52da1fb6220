"""What can go wrong on a developer's machine, as messages that say what to do."""

from __future__ import annotations


class DevelopmentError(Exception):
    """Something on this machine stands in the way; the message says what and what to do."""
