"""What a mention points at: a text that a client passes on as it got it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast, get_args

from app.runs.input_rules import LONGEST_MENTION as LONGEST
from tenancy.errors import InvalidInput

Kind = Literal["thread", "memory", "resource", "prompt", "tool", "model"]

VERSION = 1
_SEPARATOR = ":"
_OF_A_SERVER = frozenset({"resource", "prompt", "tool"})


@dataclass(frozen=True, slots=True)
class Ref:
    """One thing, of one kind; of a tool server's, by the server's name and its own."""

    kind: Kind
    name: str
    server: str | None = None

    def __str__(self) -> str:
        parts = (self.kind, self.server, self.name)
        return _SEPARATOR.join(part for part in parts if part is not None)


def parse_ref(text: object) -> Ref:
    """Read what a client sent.

    Raises:
        InvalidInput: it is none of ours.
    """
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST:
        raise InvalidInput(f"A mention is text of at most {LONGEST} characters.")
    kind, _, rest = text.partition(_SEPARATOR)
    if kind not in get_args(Kind):
        raise InvalidInput("A mention is of a kind that is not known.")
    server, name = None, rest
    if kind in _OF_A_SERVER:
        server, _, name = rest.partition(_SEPARATOR)
    if not name or server == "":
        raise InvalidInput("A mention names nothing.")
    return Ref(cast("Kind", kind), name, server)
