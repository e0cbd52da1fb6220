"""Where a trace is replayed: the scheduler in Postgres with two workers, or a queue in here."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID, uuid4

from app.bench.fairness.backstage import RUNS
from app.bench.fairness.ledger import WatchedSeats
from app.bench.fairness.people import CONTEXT, MODEL, MOST_SEATS, OUTPUT, SEATS
from app.models.access import ModelAccess
from app.models.scope import RunScope
from app.models.seats import SeatKeeper
from app.models.settings import ModelTiming
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.signals import SEAT_GRANTED, Announcer, Listener
from tenancy.principal import ClaimedRun, UserId
from tenancy.scheduler.pools import PoolDatabase, PoolDeclaration
from tenancy.scheduler.seats import Seat, SeatDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from contextlib import AbstractAsyncContextManager

    from app.bench.database import BenchDatabase
    from app.bench.fairness.backstage import Backstage
    from app.bench.fairness.dispatchers import LocalSeats
    from app.bench.fairness.ledger import Ledger
    from app.bench.fairness.people import Person, Size
    from app.models.seats import Seats
    from tenancy.scheduler.limits import Limits

Scopes = list[list[RunScope]]
"""Of each person, what their calls are made in the name of."""

_WORKERS = 2
_LEASE_SECONDS = 3600.0
_COOLDOWN_SECONDS = 10.0
_TEND_SECONDS = 1.0
_LOOK_SECONDS = 0.05
_POLL_SECONDS = 60.0
"""Ten thousand calls that wait in two workers are not what polling is made for."""
_LIMITS: Limits = {"weight": 1, "running": 1000, "tokens_per_day": None, "tokens_per_month": None}


class Stage(Protocol):
    """A way of giving out seats."""

    name: str
    most_seats: int
    """Of one person."""

    def opened(
        self, people: Sequence[Person], ledger: Ledger
    ) -> AbstractAsyncContextManager[Scopes]:
        """Have people come, and write down what happens to their calls."""
        ...

    async def ask(self, run: ClaimedRun, size: Size) -> None:
        """Take note of what is asked next."""
        ...

    async def queued(self, calls: int) -> None:
        """Wait until so many calls wait."""
        ...

    async def dismiss(self) -> None:
        """Empty the queue: nobody needs to be seen out one by one."""
        ...


class LocalStage:
    """A queue in this process."""

    def __init__(self, name: str, make: Callable[[Seat, int], LocalSeats], url: str) -> None:
        self.name = name
        self.most_seats = SEATS + 1  # nothing holds anybody back
        self._make = make
        self._url = url

    @asynccontextmanager
    async def opened(self, people: Sequence[Person], ledger: Ledger) -> AsyncIterator[Scopes]:
        """Have people come, and write down what happens to their calls."""
        users = [UserId(uuid4()) for _ in people]
        seats = self._make(Seat("paced", self._url, CONTEXT, OUTPUT), SEATS)
        async with _access(seats, users, ledger) as access:
            yield [[RunScope(ClaimedRun(user, uuid4(), 1), access)] for user in users]

    async def ask(self, run: ClaimedRun, size: Size) -> None:
        """Nothing to take note of."""

    async def queued(self, calls: int) -> None:  # noqa: ARG002 - as every stage
        """Whoever asks waits from then on."""
        await asyncio.sleep(0)

    async def dismiss(self) -> None:
        """Nothing is kept of whoever leaves."""


class PostgresStage:
    """The scheduler, with workers that tell each other of seats by notifications.

    Args:
        name: what it is called in the tables.
        database: a migrated one.
        backstage: the same one, for a superuser.
        url: the model server's.
        knows_costs: estimates are the true costs.
    """

    def __init__(
        self,
        name: str,
        database: BenchDatabase,
        backstage: Backstage,
        url: str,
        *,
        knows_costs: bool = False,
    ) -> None:
        self.name = name
        self.most_seats = MOST_SEATS
        self._settings = replace(database.dispatch, acquire_timeout=300)
        self._listen_dsn = database.service.dsn
        self._backstage = backstage
        self._url = url
        self._knows_costs = knows_costs

    @asynccontextmanager
    async def opened(self, people: Sequence[Person], ledger: Ledger) -> AsyncIterator[Scopes]:
        """Have people come, and write down what happens to their calls."""
        async with AsyncExitStack() as stack:
            if self._knows_costs:
                await self._backstage.know_true_costs()
                stack.push_async_callback(self._backstage.forget_true_costs)
            seats = SeatDatabase(self._settings)
            stack.push_async_callback(seats.close)
            users = await self._backstage.add(people)
            await self._declare()
            stack.push_async_callback(self._backstage.clear)
            scopes: dict[UserId, list[RunScope]] = {user: [] for user in users}
            for runs, worker in await self._claim(len(people) * RUNS):
                keeper = await self._keeper(stack, worker, seats, ledger)
                access = await stack.enter_async_context(_access(keeper, users, ledger))
                for run in runs:
                    scopes[run.user_id].append(RunScope(run, access))
            await stack.enter_async_context(_background(self._look(ledger)))
            yield [scopes[user] for user in users]

    async def ask(self, run: ClaimedRun, size: Size) -> None:
        """Put down the true cost, where it is known before."""
        if self._knows_costs:
            await self._backstage.put_true_cost(run.run_id, size)

    async def queued(self, calls: int) -> None:
        """Wait until so many calls wait."""
        while await self._backstage.waiting() < calls:  # noqa: ASYNC110 - it is in the database
            await asyncio.sleep(_LOOK_SECONDS)

    async def dismiss(self) -> None:
        """Empty the queue."""
        await self._backstage.empty_queue()

    async def _declare(self) -> None:
        pools = PoolDatabase(self._settings)
        pool = PoolDeclaration("paced", "paced", self._url, None, MODEL, SEATS, CONTEXT, OUTPUT)
        try:
            await pools.declare([pool])
        finally:
            await pools.close()

    async def _claim(self, runs: int) -> list[tuple[list[ClaimedRun], UUID]]:
        """Have each worker claim its part of all runs."""
        dispatch = DispatchDatabase(self._settings)
        try:
            claimed = []
            for _ in range(_WORKERS):
                worker = uuid4()
                await dispatch.register_worker(worker, "bench", 1, _LEASE_SECONDS)
                part = await dispatch.claim_runs(worker, runs // _WORKERS, _LIMITS, MODEL)
                claimed.append((part, worker))
            return claimed
        finally:
            await dispatch.close()

    async def _keeper(
        self, stack: AsyncExitStack, worker: UUID, seats: SeatDatabase, ledger: Ledger
    ) -> SeatKeeper:
        clock = asyncio.get_running_loop().time
        announcer = Announcer(self._listen_dsn)

        def announce(call: UUID) -> None:
            ledger.announced[str(call)] = clock()
            announcer.seat_granted(call)

        keeper = SeatKeeper(worker, seats, _LIMITS, announce, _COOLDOWN_SECONDS, _POLL_SECONDS)

        def hear(payload: str | None) -> None:
            for call in payload.split(",") if payload else ():
                if (since := ledger.announced.pop(call, None)) is not None:
                    ledger.hints.append(clock() - since)
            keeper.hear(payload)

        for service in (keeper, announcer, Listener(self._listen_dsn, {SEAT_GRANTED: hear})):
            stack.push_async_callback(service.stop)
            await service.start()
        await stack.enter_async_context(_background(_tend(seats, keeper)))
        return keeper

    async def _look(self, ledger: Ledger) -> None:
        while True:
            is_idle = await self._backstage.has_idle_seat()
            if ledger.ended:  # from then on, nothing is as it should be
                return
            ledger.idle_samples += is_idle
            ledger.samples += 1
            await asyncio.sleep(_LOOK_SECONDS)


async def _tend(seats: SeatDatabase, keeper: SeatKeeper) -> None:
    while True:
        keeper.tell(await seats.tend(_COOLDOWN_SECONDS))
        await asyncio.sleep(_TEND_SECONDS)


@asynccontextmanager
async def _access(
    seats: Seats, users: Sequence[UserId], ledger: Ledger
) -> AsyncIterator[ModelAccess]:
    persons = {user: number for number, user in enumerate(users)}
    access = ModelAccess(WatchedSeats(seats, persons, ledger), ModelTiming())
    try:
        yield access
    finally:
        await access.aclose()


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
