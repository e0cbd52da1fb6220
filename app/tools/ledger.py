"""The ledger of tool calls: what was begun is on record before it is made, and never made twice.

A row belongs to a call's place in the conversation, which is the same in every replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.tools.effects import NOTHING, Earlier, Entry, Found
from app.tools.fingerprint import fingerprint
from app.tools.waiting import NotApproved
from tenancy.database.retry import while_database_is_away

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from app.tools.effects import Ending, IntendedCall, Needs
    from app.tools.site import CallSite
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

_BEGIN = (
    "SELECT * FROM tenant.begin_effect($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,"
    " $14, $15, $16, $17, $18, $19, $20)"
)
_END = "SELECT tenant.end_effect($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_FIND = "SELECT * FROM tenant.find_effect($1, $2, $3, $4)"
_SETTLE = "SELECT * FROM tenant.settle_doubt($1, $2, $3, $4, $5, $6, $7)"
_LATE = "SELECT * FROM tenant.record_late_outcome($1, $2, $3, $4, $5, $6, $7, $8, $9)"


class Ledger:
    """One run's calls. What is written carries the run's fence."""

    def __init__(self, database: TenantDatabase, run: ClaimedRun, thread_id: UUID) -> None:
        self._database = database
        self.run = run
        self._thread_id = thread_id

    async def begin(self, site: CallSite, call: IntendedCall, needs: Needs = NOTHING) -> Entry:
        """Ask whether to make a call; where to, it is on record before this returns.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: nothing is known, and the call must not be made.
        """
        about = (call.server.name, call.own_url, call.version, call.tool)
        return await self._begin(
            site,
            about,
            call.arguments,
            needs,
            is_recorded=call.is_recorded,
            repeat_seconds=call.repeat_seconds,
        )

    async def admit(
        self, site: CallSite, tool: str, arguments: Mapping[str, Any] | None, needs: Needs
    ) -> None:
        """See that a call of a tool that comes with the service may be made. It is not recorded.

        ``arguments`` are None where the tool was given those of the message and has them otherwise.

        Raises:
            NotApproved: its person has to approve it first.
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: nothing is known, and the call must not be made.
        """
        entry = await self._begin(site, (None, None, None, tool), arguments, needs)
        if entry.found is Found.UNAPPROVED:
            raise NotApproved(entry.changed)

    async def end(
        self, site: CallSite, key: UUID, ending: Ending, result: Mapping[str, Any] | None = None
    ) -> None:
        """Record what came of a call. One of which nothing is recorded stays in doubt.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: Postgres stayed away.
        """
        await while_database_is_away(
            self._database.call, self.run, _END, *self._place(site), key, ending, result
        )

    async def record_late(
        self, site: CallSite, key: UUID, ending: Ending, result: Mapping[str, Any]
    ) -> bool | None:
        """Record what came of a call after all, whosever the run is.

        Says whether that goes on by it; None: there is nothing to record it of.

        Raises:
            UserUnavailable: the user is suspended, being erased, or gone.
            DatabaseUnavailable: Postgres stayed away.
        """
        (row,) = await while_database_is_away(
            self._database.call, self.run, _LATE, *self._place(site), key, ending, result
        )
        return bool(row["resumed"]) if row["recorded"] else None

    async def find(self, site: CallSite, arguments: Mapping[str, Any]) -> Earlier | None:
        """What is on record of a call.

        Raises:
            DatabaseUnavailable: Postgres is away.
        """
        where = (self._thread_id, site.message_id, site.tool_call_id)
        rows = await self._database.call(self.run, _FIND, *where)
        return next((_earlier(row, arguments) for row in rows), None)

    async def settle_doubt(self, site: CallSite, arguments: Mapping[str, Any]) -> Earlier | None:
        """What is on record of a call that was in doubt, with what its person has said of it.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: Postgres stayed away.
        """
        rows = await while_database_is_away(
            self._database.call, self.run, _SETTLE, *self._place(site), site.doubt
        )
        return next((_earlier(row, arguments) for row in rows), None)

    async def _begin(
        self,
        site: CallSite,
        about: tuple[str | None, str | None, int | None, str],
        arguments: Mapping[str, Any] | None,
        needs: Needs,
        *,
        is_recorded: bool = False,
        repeat_seconds: float = 0,
    ) -> Entry:
        sent = site.arguments_sha256 if arguments is None else fingerprint(arguments)
        (row,) = await self._database.call(
            self.run,
            _BEGIN,
            *self._place(site),
            *about,
            sent,
            is_recorded,
            float(repeat_seconds),
            site.approval,
            site.arguments_sha256 or sent,
            needs.policy_version,
            needs.schema_sha256,
            needs.subject,
            needs.approval_version,
            site.doubt,
        )
        return Entry(
            Found(row["answer"]),
            row["key"],
            row["result"],
            tuple(row["changed"]),
            row["sent"],
            row["started_at"],
        )

    def _place(self, site: CallSite) -> tuple[Any, ...]:
        run = self.run
        return (run.run_id, run.fence, self._thread_id, site.message_id, site.tool_call_id)


def _earlier(row: Any, arguments: Mapping[str, Any]) -> Earlier:  # noqa: ANN401 - a database row
    return Earlier(
        row["server"],
        row["tool"],
        row["arguments_sha256"] == fingerprint(arguments),
        row["state"],
        row["result"],
        row["sent"],
        row["started_at"],
    )
