"""A person's own feed: whether the service can work, their limits, their runs and what these ask.

And their tools, each as it changes. Nothing is looked at while nothing of theirs is under way and
nothing is heard of; otherwise once a second, which also finds what was not heard.
"""

from __future__ import annotations

import asyncio
import hashlib
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import orjson

from app.api.own_approvals import OwnApprovals
from app.api.own_connections import OwnConnections
from app.api.own_limits import own_limits
from app.api.own_runtime import OwnRuntime
from app.runs.changes import read_runs
from app.runs.states import wire_status
from app.runs.wire import to_json
from tenancy.database.engine import DatabaseUnavailable
from tenancy.run_states import OPEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection
    from datetime import datetime
    from uuid import UUID

    from app.api.services import Services
    from app.runs.changes import HeardChanges, RunChange
    from tenancy.principal import Principal
    from tenancy.scheduler.own import OwnStanding

LOOK_SECONDS = 1.0
BETWEEN_STANDINGS_SECONDS = 0.2
"""How often connections and parts are looked at of which one hears again and again."""
_BACKOFF = 20
"""A look that took t is followed by a pause of at least 20 t: a slow database is asked less."""
LONGEST_REST_SECONDS = 5.0
"""But one look that took long is no reason to be out of date for a minute."""
LONGEST_PAUSE_SECONDS = 3600.0
"""A run may be scheduled for next year."""
_MOST_ENDED = 100
"""Runs whose end is remembered to have been told: of a last change one may hear late, or twice."""
_PASSING = frozenset({"used", "remaining"})
"""What of the rate of requests changes by itself, with time."""


class OwnEvents:
    """One reader's view of their own limits, runs, approvals and connections."""

    def __init__(self, services: Services, principal: Principal) -> None:
        self._services = services
        self._principal = principal
        self._told = b""
        self._approvals = OwnApprovals(services.database, principal)
        self._connections = OwnConnections(services.connections, principal)
        self._runtime = OwnRuntime(services.runtime)
        self._look_took = 0.0
        self._pause: float | None = None
        """When to look again; None where nothing changes by itself."""
        self._had_reason = False
        self._open: dict[UUID, datetime] = {}
        self._ended: dict[UUID, datetime] = {}

    async def frames(self) -> AsyncGenerator[bytes, None]:
        """The limits and the parts; then they, runs, approvals and connections, as they change.

        While the database is away, only the parts are told, of which it is one. Then the stream
        ends: whoever reads it again is told what has become of everything else.

        Raises:
            DatabaseUnavailable: Postgres could not be reached.
        """
        with (
            self._services.tail.all_of(self._principal.user_id) as heard,
            self._services.runtime.listening(heard.hear_of_runtime),
        ):
            self._take_note(await self._read_runs(()))
            await self._connections.news()
            await self._approvals.begin()
            yield await self._limits()
            yield self._news_of_parts()
            try:
                while True:
                    async with aclosing(self._look_again(heard)) as all_news:
                        async for news in all_news:
                            yield news
            except DatabaseUnavailable:
                async with aclosing(self._until_the_database_is_back(heard)) as parts:
                    async for news in parts:
                        yield news
                raise

    async def _look_again(self, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
        """Wait for a reason to look; then tell whatever has changed."""
        for waiting in (self._rest, self._until_a_reason):
            async with aclosing(waiting(heard)) as meanwhile:
                async for news in meanwhile:
                    yield news
        async with aclosing(self._news_of_runs(heard)) as all_news:
            async for news in all_news:
                yield news
        for news in await self._news_of_standing(heard):
            yield news
        if frame := await self._limits():
            yield frame

    async def _news_of_runs(self, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
        """How runs stand, and what they ask, where that has changed."""
        ids, asking = heard.take(), heard.take_approvals()
        changes = self._take_note(await self._read_runs(ids))
        for change in changes:
            yield _run_frame(change)
        if asking is not None or self._approvals.may_have_changed(ids, changes):
            async with aclosing(self._approvals.news(asking or ())) as all_news:
                async for news in all_news:
                    yield news

    async def _rest(self, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
        """Rest between two looks, as long as they take; but tell meanwhile what cannot wait."""
        clock = asyncio.get_running_loop().time
        feeds = self._services.tail.listeners(self._principal.user_id)
        over = clock() + pause_after(self._look_took, feeds)
        while (left := over - clock()) > 0 and await heard.wait_for_standing(left):
            for news in await self._news_of_standing(heard):
                yield news
            await asyncio.sleep(min(max(over - clock(), 0), BETWEEN_STANDINGS_SECONDS))

    async def _news_of_standing(self, heard: HeardChanges) -> list[bytes]:
        """Connections and parts that stand otherwise than was told."""
        frames = await self._connections.news() if heard.take_connections() else []
        frame = self._news_of_parts()
        return [*frames, frame] if frame else frames

    def _news_of_parts(self) -> bytes:
        return self._runtime.news(self._connections.found)

    async def _until_a_reason(self, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
        """Wait until there is a reason to look again, or a last look is due.

        One look follows the last that had one: what a call has used is counted a moment after its
        run has ended. Parts are told of without a look: everybody hears of them at once, and it
        may be the database that is away.
        """
        if self._pause is None or self._pause > LOOK_SECONDS:
            if self._had_reason:
                self._had_reason = False
                return
            clock = asyncio.get_running_loop().time
            due = None if self._pause is None else clock() + self._pause
            await heard.wait(self._pause)
            while heard.take_parts():
                if frame := self._news_of_parts():
                    yield frame
                await heard.wait(None if due is None else max(due - clock(), 0))
        self._had_reason = True

    async def _until_the_database_is_back(self, heard: HeardChanges) -> AsyncGenerator[bytes, None]:
        """Tell of the parts, of which the database is one, until it answers."""
        watch = self._services.runtime
        await watch.next_look()  # one that is away is found to be
        while True:
            heard.take_connections()
            if frame := self._news_of_parts():
                yield frame
            if watch.has_database:
                return
            await heard.wait_for_standing(LONGEST_REST_SECONDS)

    async def _read_runs(self, heard: Collection[UUID]) -> list[RunChange]:
        clock = asyncio.get_running_loop().time
        started = clock()
        async with self._services.database.reading(self._principal) as tx:
            found = await read_runs(tx, {*heard, *self._open})
        self._look_took = clock() - started
        return found

    def _take_note(self, runs: list[RunChange]) -> list[RunChange]:
        """Remember how runs stand; return those that stand otherwise than was told."""
        known = {**self._ended, **self._open}
        self._open = {run.run_id: run.updated_at for run in runs if run.state in OPEN}
        for run in runs:
            if run.state not in OPEN:
                self._ended[run.run_id] = run.updated_at
        while len(self._ended) > _MOST_ENDED:
            del self._ended[next(iter(self._ended))]
        return [run for run in runs if known.get(run.run_id) != run.updated_at]

    async def _limits(self) -> bytes:
        """The limits, if they have changed since they were told; and note when to look again."""
        clock = asyncio.get_running_loop().time
        started = clock()
        document, own = await own_limits(self._services, self._principal)
        self._look_took += clock() - started
        seen = hashlib.blake2b(to_json(_lasting(document)), digest_size=16).digest()
        frame = b"" if seen == self._told else b"event: limits\ndata: %b\n\n" % to_json(document)
        self._told, self._pause = seen, _pause(own)
        return frame


def pause_after(took: float, feeds: int) -> float:
    """How long to rest after a look, where one person has so many feeds in this process.

    Together they look no more often than one would if looking takes long, but each after
    ``LONGEST_REST_SECONDS`` at the latest.
    """
    return min(max(LOOK_SECONDS, _BACKOFF * feeds * took), LONGEST_REST_SECONDS)


def _pause(own: OwnStanding) -> float | None:
    if own.running or own.queued:
        return LOOK_SECONDS
    if own.due_in_seconds is None:
        return None
    return min(max(own.due_in_seconds, LOOK_SECONDS), LONGEST_PAUSE_SECONDS)


def _lasting(document: dict[str, Any]) -> dict[str, Any]:
    """What of the limits does not change by itself, from one moment to the next."""
    limits = [
        {key: value for key, value in limit.items() if key not in _PASSING}
        if limit["name"] == "requests_per_minute"
        else limit
        for limit in document["limits"]
    ]
    return {**document, "limits": limits}


def _run_frame(change: RunChange) -> bytes:
    data = {
        "run_id": str(change.run_id),
        "thread_id": str(change.thread_id),
        "state": change.state.value,
        "status": wire_status(change.state),
        "updated_at": change.updated_at,
    }
    return b"event: run\ndata: %b\n\n" % orjson.dumps(data)
