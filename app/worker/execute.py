"""Runs one claimed run to its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import structlog

from app.runs.events import Event
from app.runs.runs import RunRequest
from app.runs.tail import run_key
from app.runs.wire import to_json
from app.worker.outcome import WORKER_LOST, Failure, RunTimedOut, failure_of
from app.worker.parts import langgraph_modes
from app.worker.writer import EventWriter
from tenancy.checkpoints.pool import Fence
from tenancy.checkpoints.saver import TenantSaver
from tenancy.checkpoints.store import TenantStore
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from uuid import UUID

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from app.agent.graphs import GraphCatalogue
    from app.worker.parts import Part
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

log = structlog.get_logger(__name__)

FIRST_CLAIM = 1
"""The fence of a run's first claim; each claim and each release raises it."""

_BEGIN_ATTEMPT = "SELECT * FROM tenant.begin_attempt($1, $2, $3, $4)"


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """How long and how often a run may be tried, and how many steps it may take."""

    run_seconds: float
    max_attempts: int
    recursion_limit: int


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """What a claimed run needs to be executed."""

    thread_id: UUID
    graph_id: str
    request: RunRequest
    metadata: dict[str, Any]
    attempts_spent: int
    next_seq: int
    head: Mapping[str, Any]
    """The thread's newest checkpoint, read with the run; without an id where there is none."""


class RunExecutor:
    """Executes runs. Everything it writes carries the run's fence."""

    def __init__(
        self,
        worker_id: UUID,
        database: TenantDatabase,
        pool: CheckpointPool,
        graphs: GraphCatalogue,
        announcer: Announcer,
        limits: ExecutionLimits,
    ) -> None:
        self._worker_id = worker_id
        self._database = database
        self._pool = pool
        self._graphs = graphs
        self._announcer = announcer
        self._limits = limits

    async def execute(self, run: ClaimedRun) -> None:
        """Execute a run and settle it.

        Raises:
            LeaseLost: it is no longer ours, or it wrote where it may not; nothing was written.
            DatabaseUnavailable: Postgres stayed away. That is no fault of the run's: it is not
                settled, and whoever claimed it gives it back.
        """
        loaded = await self._begin(run)
        async with _Execution(self, run, loaded) as execution:
            await execution.settle(await execution.outcome())

    async def _begin(self, run: ClaimedRun) -> LoadedRun:
        """Take up the run; its ``metadata`` event is committed with it."""
        claim = (run.run_id, run.fence, self._worker_id)
        (row,) = await self._database.call(run, _BEGIN_ATTEMPT, *claim)
        self._announcer.run_changed(run_key(run.user_id, run.run_id))
        return LoadedRun(
            thread_id=row["run_thread_id"],
            graph_id=row["graph_id"],
            request=RunRequest.from_json(row["request"]),
            metadata=row["run_metadata"],
            attempts_spent=row["attempts_spent"],
            next_seq=row["next_seq"],
            head=row,
        )


class _Execution:
    """One attempt at one run: its saver, its writer, and the task that drives the graph."""

    def __init__(self, executor: RunExecutor, run: ClaimedRun, loaded: LoadedRun) -> None:
        self._run = run
        self._loaded = loaded
        self._limits = executor._limits  # noqa: SLF001 - same room
        self._graphs = executor._graphs  # noqa: SLF001
        self._failure: BaseException | None = None
        self._graph_task: asyncio.Task[None] | None = None
        fence = Fence(run.run_id, run.fence)
        pool = executor._pool  # noqa: SLF001
        self._saver = TenantSaver(pool, executor._database, run, fence, self._fail, loaded.head)  # noqa: SLF001
        self._store = TenantStore(pool, run.user_id, fence=fence)
        self._writer = EventWriter(
            executor._database,  # noqa: SLF001
            executor._announcer,  # noqa: SLF001
            run,
            loaded.next_seq,
            loaded.request.stream_modes,
            self._fail,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self._saver.close()
        finally:
            await self._writer.stop()

    async def outcome(self) -> Failure | None:
        """Drive the graph; return why it failed, or None.

        Raises:
            LeaseLost: a write found that the run is another worker's.
            DatabaseUnavailable: Postgres stayed away longer than it is worth waiting.
        """
        if self._loaded.attempts_spent >= self._limits.max_attempts:
            return WORKER_LOST
        self._graph_task = asyncio.create_task(self._drive(), name=f"run {self._run.run_id}")
        try:
            await self._graph_task
        except asyncio.CancelledError:
            if self._failure is None:
                await _ended(self._graph_task)
                raise
            return self._why(self._failure)
        except Exception as error:  # noqa: BLE001 - a graph may raise anything
            return self._why(self._failure or error)
        return None

    async def settle(self, failure: Failure | None) -> None:
        """Close the saver, then commit the outcome with the last events."""
        await self._saver.close()
        if failure is None:
            await self._writer.settle(RunState.SUCCESS)
            return
        body = {"error": failure.code, "message": failure.message}
        self._writer.emit(Event("error", to_json(body)))
        await self._writer.settle(failure.state, failure)

    async def _drive(self) -> None:
        budget = asyncio.timeout(self._limits.run_seconds)
        try:
            async with budget:
                await self._stream_graph()
        except TimeoutError as error:
            # A graph may raise one of its own: only the budget's is a run that took too long.
            raise (RunTimedOut if budget.expired() else RuntimeError) from error

    async def _stream_graph(self) -> None:
        graph = self._bound_graph()
        graph_input, config = await self._start(graph)
        subgraphs = self._loaded.request.stream_subgraphs
        parts = graph.astream(
            graph_input,
            config,
            context=self._loaded.request.context,
            stream_mode=langgraph_modes(self._loaded.request.stream_modes),
            subgraphs=subgraphs,
            durability="sync",
        )
        async for part in _with_namespace(parts, subgraphs=subgraphs):
            await self._writer.emit_part(part)

    def _bound_graph(self) -> Pregel[Any, Any, Any, Any]:
        graph = self._graphs.get(self._loaded.graph_id)
        return graph.copy(update={"checkpointer": self._saver, "store": self._store})

    async def _start(self, graph: Pregel[Any, Any, Any, Any]) -> tuple[Any, RunnableConfig]:
        """The input and configuration of this attempt.

        The fence tells whether it is the first: an attempt that was given back is not counted.
        A later one passes the original input again: the run id in the metadata makes
        LangGraph resume instead of applying it twice. Once the thread's head is this run's own,
        the checkpoint that the client chose must go, or a second branch would begin there.
        """
        config = self._config()
        if self._run.fence == FIRST_CLAIM:
            return self._loaded.request.input, config
        head = await graph.aget_state(
            {"configurable": {"thread_id": str(self._loaded.thread_id), "checkpoint_ns": ""}}
        )
        if (head.metadata or {}).get("run_id") == str(self._run.run_id):
            config["configurable"].pop("checkpoint_id", None)
        if "values" in self._loaded.request.stream_modes:
            self._writer.emit(Event("values", to_json(head.values)))
        return self._loaded.request.input, config

    def _config(self) -> RunnableConfig:
        wanted = self._loaded.request.config
        configurable = {
            **wanted.get("configurable", {}),
            "thread_id": str(self._loaded.thread_id),
            "checkpoint_ns": "",
        }
        if self._loaded.request.checkpoint_id is not None:
            configurable["checkpoint_id"] = self._loaded.request.checkpoint_id
        return {
            "configurable": configurable,
            "tags": list(wanted.get("tags", ())),
            "recursion_limit": wanted.get("recursion_limit", self._limits.recursion_limit),
            "metadata": {
                **self._loaded.metadata,
                "graph_id": self._loaded.graph_id,
                "run_id": str(self._run.run_id),
            },
        }

    def _fail(self, error: BaseException) -> None:
        """A write failed for good: end the graph, which would go on to its last node."""
        self._failure = self._failure or error
        if self._graph_task is not None:
            self._graph_task.cancel()

    def _why(self, error: BaseException) -> Failure:
        if isinstance(error, LeaseLost | DatabaseUnavailable):
            raise error
        failure = failure_of(error)
        log.warning(
            "run failed",
            run_id=str(self._run.run_id),
            code=failure.code,
            error=type(error).__name__,
        )
        return failure


async def _with_namespace(parts: AsyncIterator[Any], *, subgraphs: bool) -> AsyncIterator[Part]:
    async for part in parts:
        yield part if subgraphs else ((), *part)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
