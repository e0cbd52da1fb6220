"""A failure whose text the model may read."""

from __future__ import annotations


class ToolRefusal(Exception):
    """A tool cannot do what it was asked, and says why in words of its own.

    The text is ours or was made to be read: it is never another program's error.
    """
