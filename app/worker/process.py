"""A worker process: its services, started in order and stopped in the opposite one."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol
from uuid import UUID, uuid4

import structlog

from app.agent.graphs import SYSTEM_PROMPT, GraphCatalogue
from app.agent.tracing import say_what_was_asked
from app.agent.versions import agent_version
from app.databases import dispatch_settings, listen_dsn, service_settings
from app.erasure.restoring import apply_tombstones
from app.logging import facts_of
from app.metrics import serving_metrics
from app.models.access import ModelAccess
from app.models.catalogue.looking import ServedModels
from app.models.seats import SeatKeeper
from app.models.settings import ModelTiming
from app.runs.history import ThreadHistory
from app.sharing import chat_models, declared_pools, default_limits, full_name
from app.telemetry.export import exporting_spans
from app.tools.stdio.records import left_children
from app.tools.stdio.undumpable import make_undumpable
from app.worker.check_connections import ConnectionChecker
from app.worker.claim import Claimer
from app.worker.conversations import Conversations
from app.worker.end import EndOfProcess
from app.worker.equip import Outfitter
from app.worker.erasing import Erasing
from app.worker.execute import RunExecutor
from app.worker.expire_approvals import ApprovalExpiry
from app.worker.lease import LeaseKeeper
from app.worker.letting_go import LettingGo
from app.worker.mentioned import MentionReader
from app.worker.metrics import MeasuredAttempts, MeasuredSeats, MeasuredTools
from app.worker.presence import Presence, check_pools
from app.worker.reap import Reaper
from app.worker.retention import Retention
from app.worker.revoked import RevokedConnections
from app.worker.services import ExecutionLimits, ExecutionServices
from app.worker.stray_folders import StrayFolders
from app.worker.tend import SeatTender
from app.worker.tool_services import ToolServices, open_tools
from app.worker.watch import Watcher
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.roles import assert_role
from tenancy.database.signals import (
    CHECK_WANTED,
    CONNECTION_REVOKED,
    RUN_QUEUED,
    RUN_STOPPED,
    SEAT_GRANTED,
    USER_CHANGED,
    Announcer,
    Listener,
)
from tenancy.database.tenant import TenantDatabase
from tenancy.erasure.records import ErasureDatabase
from tenancy.errors import StoaError
from tenancy.reconcile.passing import reconcile
from tenancy.reconcile.summary import log_summary
from tenancy.scheduler.components import ComponentDatabase
from tenancy.scheduler.pools import PoolDatabase
from tenancy.scheduler.seats import SeatDatabase

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from prometheus_client import CollectorRegistry

    from app.settings import Settings
    from tenancy.database.engine import DatabaseSettings

log = structlog.get_logger(__name__)


class Service(Protocol):
    """Something that runs until it is stopped."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End, and leave nothing behind."""
        ...


async def run_worker(
    settings: Settings,
    ready: Callable[[], None] | None = None,
    hurry: Callable[[], None] = lambda: None,
) -> None:
    """Run a worker until SIGTERM or SIGINT.

    The first lets running steps finish for a while, a second one ends the worker at once. What is
    not finished goes back to the queue either way.

    Args:
        settings: the service's settings.
        ready: called once the worker claims runs.
        hurry: called when the lease is lost, or a second signal came: what is left to do is to
            end, and neither a dead connection nor a graph may hold that up.

    Raises:
        WrongRole: a database role may do more or less than it must.
        TombstoneUnusable: somebody who was erased may be back, and it cannot be told who.
        LostLease: the database says that this worker's lease is over.
        DatabaseUnavailable: Postgres cannot be reached at the start.
        SettingsError: the port of the metrics is taken.
    """
    make_undumpable()
    say_what_was_asked()
    await assert_role(service_settings(settings), reads_content=True)
    await assert_role(dispatch_settings(settings), reads_content=False)
    await apply_tombstones(settings)
    worker_id = uuid4()
    ended = EndOfProcess(hurry)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(exporting_spans(settings, "worker"))
        metrics = await stack.enter_async_context(
            serving_metrics(settings, settings.metrics_port, "STOA_METRICS_PORT")
        )
        base = await stack.enter_async_context(_open_base(settings, worker_id, metrics))
        keeper = LeaseKeeper(
            worker_id,
            dispatch_settings(settings),
            settings.lease_seconds,
            settings.heartbeat_seconds,
            ended.lease_lost,
        )
        await _run(stack, keeper)
        stack.push_async_callback(_retire, base, worker_id)
        await _take_back(settings, base, dispatch_settings(settings))
        pools = declared_pools(settings)
        base.keeper.tell(await base.pools.declare(pools))
        await check_pools(base.components, pools, worker_id)
        claimer = await _start_duties(stack, base, settings, worker_id, metrics)
        await _run(stack, Presence(base.components, worker_id))
        log.info("worker ready", worker_id=str(worker_id))
        if ready is not None:
            ready()
        await ended.wait()
        ended.assert_lease()
        await claimer.drain(ended.hurry, settings.drain_seconds)
        ended.assert_lease()
    log.info("worker stopped", worker_id=str(worker_id))


@dataclass(frozen=True, slots=True)
class _Base:
    """What the worker's duties stand on."""

    execution: ExecutionServices
    queue: DispatchDatabase
    seats: SeatDatabase
    pools: PoolDatabase
    components: ComponentDatabase
    keeper: SeatKeeper
    announcer: Announcer
    tools: ToolServices


@asynccontextmanager
async def _open_base(
    settings: Settings, worker_id: UUID, metrics: CollectorRegistry
) -> AsyncIterator[_Base]:
    async with AsyncExitStack() as stack:
        graphs = GraphCatalogue(settings)
        database = TenantDatabase(service_settings(settings))
        stack.push_async_callback(database.close)
        pool = CheckpointPool(service_settings(settings))
        await pool.open()
        stack.push_async_callback(pool.close)
        queue = DispatchDatabase(dispatch_settings(settings))
        stack.push_async_callback(queue.close)
        announcer = Announcer(listen_dsn(settings))
        await _run(stack, announcer)
        seats = SeatDatabase(dispatch_settings(settings))
        stack.push_async_callback(seats.close)
        pools = PoolDatabase(dispatch_settings(settings))
        stack.push_async_callback(pools.close)
        components = ComponentDatabase(dispatch_settings(settings))
        stack.push_async_callback(components.close)
        keeper = SeatKeeper(
            worker_id,
            seats,
            default_limits(settings),
            announcer.seat_granted,
            settings.pool_wait_seconds,
        )
        models = ModelAccess(MeasuredSeats(keeper, metrics), ModelTiming())
        stack.push_async_callback(models.aclose)
        await _run(stack, keeper)
        served = ServedModels(chat_models(settings))
        stack.push_async_callback(served.aclose)
        limits = ExecutionLimits(
            settings.run_seconds,
            settings.max_attempts,
            settings.recursion_limit,
            settings.approval_seconds,
        )
        opening = open_tools(settings, database, announcer, MeasuredTools(metrics))
        tools = await stack.enter_async_context(opening)
        allowed = default_limits(settings)
        outfitter = Outfitter(database, tools, allowed)
        conversations = Conversations(ThreadHistory(database, pool, graphs))
        mentions = MentionReader(database, conversations, tools.connections, tools.reader)
        execution = ExecutionServices(
            database,
            pool,
            graphs,
            models,
            served,
            announcer,
            limits,
            allowed,
            outfitter,
            mentions,
            agent_version(settings.model, settings.system_prompt or SYSTEM_PROMPT),
        )
        yield _Base(execution, queue, seats, pools, components, keeper, announcer, tools)


async def _start_duties(
    stack: AsyncExitStack,
    base: _Base,
    settings: Settings,
    worker_id: UUID,
    metrics: CollectorRegistry,
) -> Claimer:
    """Start everything that the worker does; the claimer last, since it brings the work."""
    claimer = Claimer(
        worker_id,
        base.queue,
        RunExecutor(worker_id, base.execution, MeasuredAttempts(metrics)),
        base.announcer,
        concurrency=settings.worker_concurrency,
        model=full_name(settings.model),
        limits=default_limits(settings),
    )
    watcher = Watcher(worker_id, base.queue, claimer, settings.heartbeat_seconds)
    tools = base.tools
    checker = ConnectionChecker(
        base.queue, tools.connections, tools.credentials, tools.pool, base.announcer
    )
    erasures = ErasureDatabase(dispatch_settings(settings))
    stack.push_async_callback(erasures.close)
    letting_go = LettingGo(worker_id, erasures, base.queue, claimer, tools, settings.mcp_folder)
    erasing = Erasing(settings, base.execution.database, base.announcer)

    def hear_of_people(payload: str | None) -> None:
        letting_go.hear(payload)
        erasing.hear(payload)

    heard: dict[str, Callable[[str | None], None]] = {
        RUN_QUEUED: claimer.look,
        RUN_STOPPED: watcher.hear,
        SEAT_GRANTED: base.keeper.hear,
        CONNECTION_REVOKED: RevokedConnections(tools.known, tools.pool).hear,
        CHECK_WANTED: checker.hear,
        USER_CHANGED: hear_of_people,
    }
    await _run(stack, Reaper(base.queue, base.announcer, settings.reap_seconds))
    await _run(stack, ApprovalExpiry(base.queue, base.execution.database, base.announcer))
    await _run(stack, Retention(settings, base.execution.database, metrics=metrics))
    await _run(
        stack,
        SeatTender(
            base.seats,
            base.pools,
            base.components,
            base.keeper,
            settings.seat_cooldown_seconds,
        ),
    )
    await _run(stack, StrayFolders(settings))
    await _run(stack, erasing)
    await _run(stack, letting_go)
    await _run(stack, watcher)
    await _run(stack, checker)
    await _run(stack, Listener(listen_dsn(settings), heard))
    await _run(stack, claimer)
    return claimer


async def _run(stack: AsyncExitStack, service: Service) -> None:
    stack.push_async_callback(service.stop)
    await service.start()


async def _take_back(settings: Settings, base: _Base, dispatch: DatabaseSettings) -> None:
    """Put back what dead processes left, and nothing that is not proven to be dead."""
    summary = await reconcile(
        dispatch,
        limits=default_limits(settings),
        cooldown_seconds=settings.seat_cooldown_seconds,
        children=left_children(settings.mcp_folder),
    )
    log_summary(summary)
    if summary.changed:
        base.announcer.run_queued()


async def _retire(base: _Base, worker_id: UUID) -> None:
    """Give back what was not finished, so that another worker takes over at once."""
    try:
        if await base.queue.retire_worker(worker_id):
            base.announcer.run_queued()
    except StoaError as error:
        log.warning("the lease could not be given back", **facts_of(error))
