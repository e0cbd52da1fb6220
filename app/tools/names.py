"""What a tool server may be called: its name is part of every tool's name, and of a path."""

from __future__ import annotations

import re

SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
RESERVED_NAMES = frozenset(
    {"agent", "callback", "fetch", "mcp", "memories", "memory", "stoa", "time", "tools"}
)
"""Taken by what comes with the service, and by paths: nothing may shadow them."""


def why_unusable(name: str) -> str | None:
    """What is wrong with a server's name, as the end of a sentence; None if it can be used."""
    if not SERVER_NAME.fullmatch(name):
        return (
            "is not a name: use at most 40 lower-case letters, digits and hyphens,"
            " beginning with a letter or digit"
        )
    if name in RESERVED_NAMES:
        return "is reserved: give the server another name"
    return None
