"""The ledger of tool calls: what was begun is on record before it is made, and never made twice.

A row belongs to a call's place in the conversation, which is the same in every replay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from app.tools.fingerprint import fingerprint
from app.tools.servers import HttpTransport
from tenancy.database.retry import while_database_is_away

if TYPE_CHECKING:
    from uuid import UUID

    from app.tools.servers import McpServer
    from app.tools.site import CallSite
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

_BEGIN = "SELECT * FROM tenant.begin_effect($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
_END = "SELECT tenant.end_effect($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_FIND = "SELECT * FROM tenant.find_effect($1, $2, $3, $4)"

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
    """The connection has changed since its credential was read."""
    DISCONNECTED = "disconnected"
    """The person uses this server no more."""


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


@dataclass(frozen=True, slots=True)
class Earlier:
    """What the ledger holds of a call, whoever asks."""

    server: str
    tool: str
    is_same: bool
    """Whether its arguments are those that were asked for."""
    state: str
    result: Mapping[str, Any] | None


class Ledger:
    """One run's calls. What is written carries the run's fence."""

    def __init__(self, database: TenantDatabase, run: ClaimedRun, thread_id: UUID) -> None:
        self._database = database
        self._run = run
        self._thread_id = thread_id

    async def begin(self, site: CallSite, call: IntendedCall) -> Entry:
        """Ask whether to make a call; where to, it is on record before this returns.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: nothing is known, and the call must not be made.
        """
        (row,) = await self._database.call(
            self._run,
            _BEGIN,
            *self._place(site),
            call.server.name,
            call.own_url,
            call.version,
            call.tool,
            fingerprint(call.arguments),
            call.is_recorded,
            float(call.repeat_seconds),
        )
        return Entry(Found(row["answer"]), row["key"], row["result"])

    async def end(
        self, site: CallSite, key: UUID, ending: Ending, result: Mapping[str, Any] | None = None
    ) -> None:
        """Record what came of a call. One of which nothing is recorded stays in doubt.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: Postgres stayed away.
        """
        await while_database_is_away(
            self._database.call, self._run, _END, *self._place(site), key, ending, result
        )

    async def find(self, site: CallSite, arguments: Mapping[str, Any]) -> Earlier | None:
        """What is on record of a call.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        where = (self._thread_id, site.message_id, site.tool_call_id)
        rows = await self._database.call(self._run, _FIND, *where)
        return next((_earlier(row, arguments) for row in rows), None)

    def _place(self, site: CallSite) -> tuple[Any, ...]:
        run = self._run
        return (run.run_id, run.fence, self._thread_id, site.message_id, site.tool_call_id)


def _earlier(row: Any, arguments: Mapping[str, Any]) -> Earlier:  # noqa: ANN401 - a database row
    is_same = row["arguments_sha256"] == fingerprint(arguments)
    return Earlier(row["server"], row["tool"], is_same, row["state"], row["result"])
