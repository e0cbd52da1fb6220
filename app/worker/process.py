"""A worker process: its services, started in order and stopped in the opposite one."""

from __future__ import annotations

import asyncio
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

import structlog

from app.agent.graphs import GraphCatalogue
from app.databases import dispatch_settings, listen_dsn, service_settings
from app.worker.claim import Claimer
from app.worker.execute import ExecutionLimits, RunExecutor
from app.worker.lease import LeaseKeeper
from app.worker.reap import Reaper
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.roles import assert_role
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.settings import Settings

log = structlog.get_logger(__name__)


class LostLease(StoaError):
    """The worker's own lease ran out; it must not go on."""

    code = "worker_lease_lost"
    message = "This worker lost its lease and ended itself. Start a new one."


class Service(Protocol):
    """Something that runs until it is stopped."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End, and leave nothing behind."""
        ...


async def run_worker(settings: Settings, ready: Callable[[], None] | None = None) -> None:
    """Run a worker until SIGTERM or SIGINT.

    Args:
        settings: the service's settings.
        ready: called once the worker claims runs.

    Raises:
        WrongRole: a database role may do more or less than it must.
        LostLease: the database says that this worker's lease is over.
        DatabaseUnavailable: Postgres cannot be reached at the start.
    """
    service, dispatch = service_settings(settings), dispatch_settings(settings)
    await assert_role(service, reads_content=True)
    await assert_role(dispatch, reads_content=False)
    worker_id = uuid4()
    ended = _EndOfProcess()
    async with AsyncExitStack() as stack:
        graphs = GraphCatalogue(settings)
        stack.push_async_callback(graphs.close)
        database = TenantDatabase(service)
        stack.push_async_callback(database.close)
        pool = CheckpointPool(service)
        await pool.open()
        stack.push_async_callback(pool.close)
        queue = DispatchDatabase(dispatch)
        stack.push_async_callback(queue.close)
        announcer = Announcer(listen_dsn(settings))
        await _run(stack, announcer)
        await _run(
            stack,
            LeaseKeeper(
                worker_id,
                dispatch,
                settings.lease_seconds,
                settings.heartbeat_seconds,
                ended.lease_lost,
            ),
        )
        stack.push_async_callback(_retire, queue, worker_id, announcer)
        executor = RunExecutor(worker_id, database, pool, graphs, announcer, _limits(settings))
        await _run(stack, Reaper(queue, announcer, settings.reap_seconds))
        await _run(
            stack,
            Claimer(
                worker_id,
                queue,
                executor,
                listen_dsn(settings),
                concurrency=settings.worker_concurrency,
                max_running_per_user=settings.max_running_per_user,
            ),
        )
        log.info("worker ready", worker_id=str(worker_id))
        if ready is not None:
            ready()
        await ended.wait()
    log.info("worker stopped", worker_id=str(worker_id))


def _limits(settings: Settings) -> ExecutionLimits:
    return ExecutionLimits(settings.run_seconds, settings.max_attempts, settings.recursion_limit)


async def _run(stack: AsyncExitStack, service: Service) -> None:
    stack.push_async_callback(service.stop)
    await service.start()


async def _retire(queue: DispatchDatabase, worker_id: object, announcer: Announcer) -> None:
    """Give back what was not finished, so that another worker takes over at once."""
    try:
        if await queue.retire_worker(worker_id):  # type: ignore[arg-type]
            announcer.run_queued()
    except StoaError as error:
        log.warning("the lease could not be given back", code=error.code)


class _EndOfProcess:
    """Why a worker ends: it was told to, or its lease is gone."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        self._lost = False
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._end.set)

    def lease_lost(self) -> None:
        """Called from the lease's thread."""
        self._lost = True
        self._loop.call_soon_threadsafe(self._end.set)

    async def wait(self) -> None:
        """Return when the worker was told to end.

        Raises:
            LostLease: it must end because its lease is over.
        """
        await self._end.wait()
        if self._lost:
            raise LostLease
