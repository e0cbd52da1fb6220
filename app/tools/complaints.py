"""What is wrong with a server's entry in an ``mcp.json``, said so that an operator can mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pydantic import BaseModel

from app.tools.approval.entries import RuleEntry
from app.tools.entries import ServerEntry

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_APPROVAL = "say `stoa.approval` instead: when people are asked before a call"
_HINTS = {
    "cwd": "leave it out: each user's server runs in a folder of its own",
    "envFile": "write the variables into `env`; nothing is read from elsewhere",
    "disabled": "take the server's entry out instead",
    "autoApprove": _APPROVAL,
    "alwaysAllow": _APPROVAL,
    "timeout": "say `stoa.timeout` instead, in seconds",
    "allowedTools": "say `stoa.tools.allow` instead",
    "disabledTools": "say `stoa.tools.deny` instead",
    "transport": "say `type` instead",
}
"""What other programs' files have, and what to do about it here."""


_KINDS = {
    "bool_type": "`true` or `false`",
    "dict_type": "an object",
    "float_type": "a number",
    "string_type": "text, in quotes",
    "tuple_type": "a list",
}
"""What pydantic misses, as the file would have it."""
_SHOULD = re.compile(r"^(Input|String) should\b")
_A_KEY = "[key]"
"""How pydantic marks that a key is meant, and not what stands under it."""


def complaint(item: ErrorDetails) -> str:
    """One of pydantic's errors in the words of the file; it quotes names, and no values."""
    place = ".".join(str(part) for part in item["loc"] if part != _A_KEY)
    if item["type"] == "extra_forbidden":
        name = str(item["loc"][-1])
        within = f" in `{place.rpartition('.')[0]}`" if "." in place else ""
        hint = _HINTS.get(name) if "." not in place else None
        said = hint or _guess(name, _known(item["loc"][:-1])) or "leave it out"
        return f"unknown key `{name}`{within}: {said}"
    if item["type"] == "model_type":
        return f"`{place}` must be an object" if place else "must be an object"
    message = item["msg"].removeprefix("Value error, ")
    message = _SHOULD.sub("must", message)
    if kind := _KINDS.get(item["type"]):
        message = f"must be {kind}"
    elif item["type"] == "missing":
        message = "is missing"
    elif item["type"] == "string_pattern_mismatch":
        message = "is not a name" if _A_KEY in item["loc"] else "has characters that cannot be sent"
    return f"`{place}`: {message}" if place else message


def _known(loc: Iterable[int | str]) -> Iterable[str]:
    """The keys that may stand at a place of an entry."""
    model: type[BaseModel] = ServerEntry
    for part in loc:
        if part == "approval":
            return RuleEntry.model_fields
        found = model.model_fields.get(str(part))
        inner = None if found is None else found.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            model = inner
    return model.model_fields


def _guess(name: str, known: Iterable[str]) -> str | None:
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.7)
    return f"did you mean `{near[0]}`?" if near else None
