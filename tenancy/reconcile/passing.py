"""One pass over what earlier processes left: look, classify, act. A second changes nothing."""

from __future__ import annotations

import socket
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.leftovers import LeftoverDatabase
from tenancy.reconcile.facts import Facts, Kind, Lease, Outcome, Process
from tenancy.reconcile.processes import look_for
from tenancy.reconcile.rules import classify, may_be_taken_back
from tenancy.reconcile.summary import Finding, Summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from uuid import UUID

    from tenancy.database.engine import DatabaseSettings
    from tenancy.database.leftovers import Disagreement
    from tenancy.reconcile.children import LeftChild
    from tenancy.reconcile.facts import ProcessName

_NO_LIMITS: Mapping[str, object] = MappingProxyType({})


async def reconcile(
    dispatch: DatabaseSettings,
    *,
    limits: Mapping[str, object] = _NO_LIMITS,
    cooldown_seconds: float = 10.0,
    children: Sequence[LeftChild] = (),
    dry_run: bool = False,
) -> Summary:
    """Put back what dead workers had and clear them away; keep what may be alive.

    Children of theirs that outlived them are ended.

    Then seats, leases and queue are made to agree, where they do not. Any number may do so at
    once, beside workers and reapers. Runs that were put back wait for a claim: whoever called may
    want to say so.

    Args:
        dispatch: how to reach the database under the dispatch role.
        limits: the service's own, for whom no others were set.
        cooldown_seconds: how long a dead run's seat counts as held.
        children: those that are written down on this host.
        dry_run: change nothing, say what would be done.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    database = LeftoverDatabase(dispatch)
    try:
        leftovers = await _Pass(database, children, dry_run=dry_run).findings()
        disagreements = await _agree(database, cooldown_seconds, limits, dry_run=dry_run)
        return Summary((*leftovers, *disagreements), dry_run)
    finally:
        await database.close()


async def _agree(
    database: LeftoverDatabase,
    cooldown_seconds: float,
    limits: Mapping[str, object],
    *,
    dry_run: bool,
) -> list[Finding]:
    """Make seats, leases and queue agree; what still does not after that is left as it is."""
    found = await database.disagreements(cooldown_seconds, limits)
    remaining: list[Disagreement] = []
    failure: str | None = None
    if found and not dry_run:
        try:
            await database.put_in_order(cooldown_seconds, limits)
            remaining = await database.disagreements(cooldown_seconds, limits)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - told by its class, since its words may quote
            failure = type(error).__name__
    return [_disagreement(each, remaining, failure) for each in found]


def _disagreement(
    each: Disagreement, remaining: Sequence[Disagreement], failure: str | None
) -> Finding:
    if failure is not None:
        outcome = Outcome.FAILED
    else:
        outcome = Outcome.HELD if each in remaining else Outcome.DONE
    kind = Kind.QUEUE if each.what.startswith(Kind.QUEUE) else Kind.CALL
    verdict = classify(Facts(kind, Lease.MISSING, Process.UNNAMED, outcome))
    return Finding(
        kind,
        each.subject,
        pid_present=False,
        verdict=verdict,
        error=failure,
        disagreement=each.what,
    )


class _Pass:
    def __init__(
        self, database: LeftoverDatabase, children: Sequence[LeftChild], *, dry_run: bool
    ) -> None:
        self._database = database
        self._children = children
        self._dry_run = dry_run
        self._host = socket.gethostname()

    async def findings(self) -> list[Finding]:
        # Runs first: a worker's row goes once nothing refers to it.
        runs = [
            await self._settle(
                Kind.RUN,
                lost.run.run_id,
                lost.process,
                lost.lease,
                partial(self._database.take_back, lost.run),
            )
            for lost in await self._database.lost_runs()
        ]
        workers = [
            await self._settle(
                Kind.WORKER,
                row.worker_id,
                row.process,
                row.lease,
                partial(self._database.remove_worker, row.worker_id),
            )
            for row in await self._database.workers()
        ]
        children = [await self._settle_child(child) for child in self._children]
        return [*workers, *runs, *children]

    async def _settle_child(self, child: LeftChild) -> Finding:
        found = look_for(child.process, self._host)

        async def take_back() -> Outcome:
            return child.take_back(found, self._host)

        lease = child.lease(self._host)
        return await self._settle(Kind.CHILD, child.record_id, child.process, lease, take_back)

    async def _settle(
        self,
        kind: Kind,
        thing: UUID,
        name: ProcessName,
        lease: Lease,
        take_back: Callable[[], Awaitable[Outcome]],
    ) -> Finding:
        process = look_for(name, self._host)
        outcome, error = Outcome.NOT_TRIED, None
        if may_be_taken_back(kind, lease, process):
            outcome, error = await self._try(take_back)
        verdict = classify(Facts(kind, lease, process, outcome))
        return Finding(kind, thing, name.pid is not None, verdict, error)

    async def _try(self, take_back: Callable[[], Awaitable[Outcome]]) -> tuple[Outcome, str | None]:
        """Act, or say what acting would come to. One failure does not keep the rest from it."""
        if self._dry_run:
            return Outcome.DONE, None
        try:
            return await take_back(), None
        except DatabaseUnavailable:  # the rest would only fail alike
            raise
        except Exception as error:  # noqa: BLE001 - told by its class, since its words may quote
            return Outcome.FAILED, type(error).__name__
