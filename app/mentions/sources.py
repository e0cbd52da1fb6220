"""What can be searched for things to mention: the shape of a source, and what it may answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from app.mentions.refs import Kind, Ref
    from tenancy.principal import Owner

Status = Literal[
    "ok",
    "not_configured",
    "unauthorized",
    "rate_limited",
    "timeout",
    "upstream_error",
    "unsupported_scope",
]
Failure = Literal["not_configured", "unauthorized", "rate_limited", "unsupported_scope"]


class SourceFailed(Exception):
    """A source has no answer, for a reason that it knows."""

    def __init__(self, status: Failure) -> None:
        super().__init__(status)
        self.status = status


@dataclass(frozen=True, slots=True)
class Found:
    """Something that may be mentioned."""

    ref: Ref
    title: str
    url: str | None = None
    """Where a person sees it, on this service."""
    offered_by: str | None = None
    """The tool server's name; None: it is the service's own."""
    scope: UUID | None = None
    """The conversation that it belongs to, if to one alone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody looks for."""

    owner: Owner
    query: str = field(repr=False)
    limit: int
    scope: UUID | None = None
    """The conversation that is written in, which is the owner's."""


class Source(Protocol):
    """Finds things of one kind that belong to one person."""

    source: str
    """Its name, stable."""
    provider: str
    """Who knows of them: ``stoa``, or ``mcp``."""
    kind: Kind
    display_name: str

    async def find(self, asked: Asked) -> Sequence[Found]:
        """The best matches of a query.

        Raises:
            SourceFailed: it has no answer, and knows why; ``unsupported_scope`` where it cannot be
                asked from within a conversation, as all of the service's own can.
        """
        ...
