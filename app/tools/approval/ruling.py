"""What a policy says of one call. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Ask(StrEnum):
    """When a person is asked before a call is made, from the least to the strictest."""

    NEVER = "never"
    FIRST_USE = "first_use"
    """Until they have approved one like it in the same thread."""
    ALWAYS = "always"


_BY_STRICTNESS = tuple(Ask)


def stricter(one: Ask, other: Ask) -> Ask:
    """The one of two that asks more often."""
    return max(one, other, key=_BY_STRICTNESS.index)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a policy says of one call."""

    ask: Ask
    version: str
    """Of the policy: another one may say something else."""
    subject: str = ""
    """What of the tool the call turns to, where an approval is meant of that alone: a host, or
    which of the tool's rules the call fell under."""
    may_open_thread: bool = False
    """Whether the person may say "always in this conversation"."""


class Policy(Protocol):
    """The rules that hold for one person's calls of one tool."""

    def ruling(self, arguments: Mapping[str, Any]) -> Ruling:
        """What holds for a call with these arguments. Pure, in bounded time."""
        ...
