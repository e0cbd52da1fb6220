"""What the model calls a server's tool by. Pure."""

from __future__ import annotations

import hashlib
import re

from app.tools.servers import SEPARATOR

NAME_LENGTH = 64
"""As long as model APIs let a name be."""

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]")
_MARK = 8


def tool_name(server: str, tool: str) -> str:
    """``server__tool``, in characters that model APIs take.

    A server's name has no ``__`` in it, so names of two servers never meet, nor any with that of a
    tool of ours. A name that had to be changed ends in a mark of the one that it was made from.
    """
    plain = f"{server}{SEPARATOR}{_FOREIGN.sub('_', tool)}"
    if plain == f"{server}{SEPARATOR}{tool}" and len(plain) <= NAME_LENGTH:
        return plain
    mark = hashlib.sha256(tool.encode("utf-8", "replace")).hexdigest()[:_MARK]
    return f"{plain[: NAME_LENGTH - _MARK - 1]}-{mark}"
