"""One call of a tool that may change the world, as it goes into the ledger and comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from app.tools.servers import HttpTransport

if TYPE_CHECKING:
    from uuid import UUID

    from app.tools.servers import McpServer

Ending = Literal["done", "failed", "asking"]


class Found(StrEnum):
    """What the ledger says to a call that is about to be made."""

    BEGUN = "begun"
    """Make it."""
    DONE = "done"
    FAILED = "failed"
    """It was made: this is what came of it."""
    IN_DOUBT = "in_doubt"
    """It was begun, nobody knows what came of it, and it may not be repeated."""
    OTHER = "other"
    """Another call stands in its place."""
    STALE = "stale"
    """The connection, or the person's word on its calls, has changed since it was read."""
    DISCONNECTED = "disconnected"
    """The person uses this server no more."""
    UNAPPROVED = "unapproved"
    """Its person has to approve it first, or did of something else."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What lets a call be made, by the rules that its maker knows."""

    policy_version: str | None = None
    """Of the rules by which its person has to approve it; None: nobody has to."""
    subject: str | None = None
    """What of the tool it turns to; see :class:`app.tools.approval.ruling.Ruling`."""
    schema_sha256: bytes | None = None
    """Of the tool's arguments, as they are shown."""
    approval_version: int | None = None
    """Of the person's own word that is in the rules; None: there is none in them."""


NOTHING = Needs()


@dataclass(frozen=True, slots=True)
class IntendedCall:
    """A call that is about to be made."""

    server: McpServer
    tool: str
    arguments: Mapping[str, Any]
    version: int | None
    """Of the connection whose credential it uses; None where it uses nobody's."""

    @property
    def is_recorded(self) -> bool:
        """Whether it may change anything: what only reads may be made again."""
        return not self.server.trust.is_read_only(self.tool)

    @property
    def repeat_seconds(self) -> float:
        """How long after its beginning it may be repeated under its key."""
        trust = self.server.trust
        return trust.idempotency_ttl_seconds if trust.is_idempotent(self.tool) else 0

    @property
    def own_url(self) -> str | None:
        """The address of a person's own server."""
        transport = self.server.transport
        if self.server.is_own and isinstance(transport, HttpTransport):
            return transport.url
        return None


@dataclass(frozen=True, slots=True)
class Entry:
    """The ledger's answer."""

    found: Found
    key: UUID | None = None
    """What the call is known by at its server; None where it is not recorded."""
    result: Mapping[str, Any] | None = None
    changed: tuple[str, ...] = ()
    """What is otherwise than when its person decided on it; see :mod:`app.tools.waiting`."""
    sent: int | None = field(default=None, compare=False)
    started_at: datetime | None = field(default=None, compare=False)
    """How often it was sent, and when first."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the ledger holds of a call, whoever asks."""

    server: str
    tool: str
    is_same: bool
    """Whether its arguments are those that were asked for."""
    state: str
    result: Mapping[str, Any] | None
    sent: int | None
    started_at: datetime | None
