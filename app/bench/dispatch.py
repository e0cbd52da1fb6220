"""``stoa bench dispatch``: how fast seats and runs are given out, and whether a backlog matters.

The functions of ``tenancy/sql/seats.sql`` and ``dispatch.sql`` as workers call them. Each client
holds a seat; over and over it asks for a call that has to wait, settles the one it holds, and takes
up the one that this settle gave the seat to: so the queue stays as long as it is. Rounds alternate
between backlogs, so that whatever else the machine does hits all of them alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from rich.console import Console
from rich.table import Table

from app.bench.database import bench_database, settings_of
from app.bench.dispatch_data import MODEL, fill, new_call, user_number, users_of
from tenancy.database.crossing import DispatchDatabase
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tenancy.scheduler.seats import SeatDatabase

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tenancy.database.engine import DatabaseSettings
    from tenancy.principal import ClaimedRun

BACKLOGS = (1_000, 100_000, 1_000_000)
CLIENTS = (1, 4, 8)
GOAL = 800
"""Calls a second, each with a dispatch and a settle, on two cores and with several clients."""
GOAL_LOST = 0.2
"""How much of that the largest backlog may cost."""
_LEASE_SECONDS = 3600 * 4
_LIMITS = {"weight": 1, "running": 4, "tokens_per_day": None, "tokens_per_month": None}
_NOBODY_CAPPED = {"running": 1_000_000}
_WARM_UP = 100


@dataclass(slots=True)
class Rates:
    """What was measured with one backlog: a rate per round, by the number of clients."""

    queued: int
    calls: dict[int, list[float]] = field(default_factory=dict)
    claims: dict[int, list[float]] = field(default_factory=dict)


async def bench_dispatch(
    owner_dsn: str,
    *,
    backlogs: Sequence[int] = BACKLOGS,
    clients: Sequence[int] = CLIENTS,
    rounds: int = 3,
    seconds: float = 5,
) -> list[Rates]:
    """Measure in databases of its own, print a table and return what was measured.

    Args:
        owner_dsn: a superuser's DSN.
        backlogs: how many calls wait, and as many runs.
        clients: how many call the functions at once.
        rounds: how often each is measured.
        seconds: for how long.
    """
    console = Console()
    measured = [Rates(queued) for queued in backlogs]
    async with AsyncExitStack() as stack:
        queues = []
        for queued in backlogs:
            with console.status(f"queueing {queued:,} calls and runs"):
                database = await stack.enter_async_context(bench_database(owner_dsn))
                queue = Queue(database.dispatch, max(clients))
                stack.push_async_callback(queue.close)
                await queue.fill(database.owner, queued)
            queues.append(queue)
        for number in clients:
            for _ in range(rounds):
                for queue, rates in zip(queues, measured, strict=True):
                    with console.status(f"{number} clients, {rates.queued:,} queued"):
                        await queue.open_seats(number)
                        calls = await _rate(queue.call, number, seconds)
                        rates.calls.setdefault(number, []).append(calls)
                        claims = await _rate(queue.claim, number, seconds / 2)
                        rates.claims.setdefault(number, []).append(claims)
    console.print(_table(measured, clients, await settings_of(owner_dsn)))
    return measured


class Queue:
    """A database full of calls and runs that wait."""

    def __init__(self, dispatch: DatabaseSettings, most_clients: int) -> None:
        settings = replace(dispatch, pool_size=most_clients)
        self._seats = SeatDatabase(settings)
        self._pools = PoolDatabase(settings)
        self._runs = DispatchDatabase(settings)
        self._worker = uuid4()
        self._users: list[ClaimedRun] = []
        self._held: list[UUID] = []
        self._chosen = Random(1)  # noqa: S311 - the same load each time

    async def close(self) -> None:
        """Close every connection."""
        for door in (self._seats, self._pools, self._runs):
            await door.close()

    async def fill(self, owner: DatabaseSettings, queued: int) -> None:
        """Let so many calls, and as many runs, wait."""
        await self._declare(0)
        await self._runs.register_worker(self._worker, "bench", 1, _LEASE_SECONDS)
        self._users = await fill(owner, queued, self._worker)

    async def open_seats(self, seats: int) -> None:
        """Have as many calls hold a seat."""
        if seats > len(self._held):
            granted = await self._declare(seats)
            for call in granted:
                await self._take_up(call)
            self._held += granted

    async def call(self, client: int) -> None:
        """One more call asks, one is settled, and the one that is next takes up its seat."""
        held = self._held[client]
        user = user_number(held)
        # Of the same user, so that each has about as many that wait as before.
        await self._seats.take(self._users[user], new_call(user), self._worker, MODEL, _LIMITS)
        settled = await self._seats.settle(
            self._users[user].user_id,
            held,
            MODEL,
            self._chosen.randint(50, 1000),
            self._chosen.randint(20, 200),
        )
        (self._held[client],) = settled.granted
        # As in a worker: the settle is on disk before it counts, and nobody waits for that.
        await asyncio.gather(self._take_up(self._held[client]), self._seats.flush())

    async def claim(self, _client: int) -> None:
        """A run is claimed and given back."""
        for run in await self._runs.claim_runs(self._worker, 1, _NOBODY_CAPPED, MODEL):
            await self._runs.release_run(run, spend=False)

    async def _take_up(self, call: UUID) -> None:
        user = self._users[user_number(call)].user_id
        asked = await self._seats.take_up(user, call)
        assert asked.outcome == "taken"  # noqa: S101 - or nothing was measured

    async def _declare(self, seats: int) -> list[UUID]:
        pool = PoolDeclaration(
            pool="paced",
            server="paced",
            url="http://127.0.0.1:9",
            server_capacity=None,
            model=MODEL,
            capacity=seats,
            context=4096,
            output=512,
        )
        return list(await self._pools.declare([pool]))


async def _rate(work: Callable[[int], Awaitable[None]], clients: int, seconds: float) -> float:
    """How often a second it is done."""
    for _ in range(_WARM_UP // clients):
        await asyncio.gather(*(work(client) for client in range(clients)))
    done = 0
    began = time.perf_counter()

    async def keep_at_it(client: int) -> None:
        nonlocal done
        while time.perf_counter() - began < seconds:
            await work(client)
            done += 1

    async with asyncio.TaskGroup() as group:
        for client in range(clients):
            group.create_task(keep_at_it(client))
    return done / (time.perf_counter() - began)


def _table(measured: list[Rates], clients: Sequence[int], server: str) -> Table:
    table = Table(
        title="A second, the best round and (the worst)",
        caption="A call: it asks, waits, is given a seat, takes it up, is settled, and its seat is"
        f" given to the next. A claim: of one run, which is given back. {server}",
    )
    table.add_column("queued")
    for rates in measured:
        table.add_column(f"{rates.queued:,}\n{users_of(rates.queued):,} users", justify="right")
    table.add_column("most / least", justify="right")
    table.add_column("goal", justify="right")
    goal = f"≥ {GOAL}, ≥ {1 - GOAL_LOST:.1f}"
    for what, sides in (
        ("calls", [rates.calls for rates in measured]),
        ("claims", [rates.claims for rates in measured]),
    ):
        for number in clients:
            table.add_row(
                f"{what}, {number} client{'s' * (number > 1)}",
                *(f"{max(side[number]):.0f} ({min(side[number]):.0f})" for side in sides),
                f"{max(sides[-1][number]) / max(sides[0][number]):.2f}",
                goal if what == "calls" and number > 1 else "",
            )
        table.add_section()
    return table
