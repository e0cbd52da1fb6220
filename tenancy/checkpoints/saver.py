"""A LangGraph checkpointer for one user's run, or for reading one user's threads.

What differs from the library's: its reads are tenant-bound, its writes go out in batches of
one call that begins with the fence's guard, transient failures are retried (the upserts are
idempotent), and a write that fails for good is told to the run, since LangGraph itself would
go on executing nodes.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from langgraph.checkpoint.base import WRITES_IDX_MAP, get_checkpoint_id
from langgraph.checkpoint.postgres import base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT

from tenancy.checkpoints.batch import BatchCursor, CheckpointBatch
from tenancy.checkpoints.clock import observe
from tenancy.database.retry import while_database_is_away
from tenancy.errors import LeaseLost, RunTrespassed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
    )
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from tenancy.checkpoints.pool import CheckpointPool, Fence
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

PILE_UP_SECONDS = 0.002
"""A task's writes wait this long for the checkpoint that follows them, to share its commit."""

_NO_TASK = str(UUID(int=0))
"""The task id under which LangGraph keeps what belongs to no task."""

_WRITE = f"SELECT tenant.write_checkpoints({', '.join(f'${n}' for n in range(1, 24))})"


_READ = "SELECT * FROM tenant.read_checkpoint($1, $2, $3, $4)"


def _thread_id_as_text(sql: str) -> str:
    changed = sql.replace("    thread_id,\n", "    thread_id::text AS thread_id,\n", 1)
    if changed == sql:
        raise ImportError("langgraph-checkpoint-postgres has changed its select")
    return changed


class TenantReader(AsyncPostgresSaver):
    """One user's checkpoints, for reading."""

    SELECT_SQL = _thread_id_as_text(base.SELECT_SQL)

    def __init__(self, pool: CheckpointPool, database: TenantDatabase, owner: Owner) -> None:
        super().__init__(conn=None)  # type: ignore[arg-type]  # _cursor never uses it
        self._pool = pool
        self._database = database
        self._owner = owner

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """A thread's newest checkpoint, or the one that the config names, in one round trip."""
        configurable = config["configurable"]
        rows = await self._database.call(
            self._owner,
            _READ,
            configurable["thread_id"],
            configurable.get("checkpoint_ns", ""),
            get_checkpoint_id(config),
        )
        return await self._load_checkpoint_tuple(dict(rows[0])) if rows else None

    async def _load_checkpoint_tuple(self, value: DictRow) -> CheckpointTuple:
        observe(value["checkpoint_id"])
        return await super()._load_checkpoint_tuple(value)

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """The library's one way to the database; ``pipeline`` is how it marks its writes."""
        if pipeline:
            raise LeaseLost("Checkpoints are written by the run that holds the thread.")
        async with self._pool.transaction(self._owner.user_id) as cursor:
            yield cursor


class SaverObserver(Protocol):
    """Whoever executes the run, and is told what becomes of what it writes."""

    def step_ended(self) -> None:
        """A step of the graph itself, not of a subgraph, is about to be stored."""
        ...

    def committed(self) -> None:
        """What was handed in is committed."""
        ...

    def failed(self, error: BaseException) -> None:
        """A write failed for good; LangGraph itself would go on executing nodes."""
        ...


class TenantSaver(TenantReader):
    """One user's checkpoints, for one run: everything it writes carries the run's fence."""

    def __init__(
        self,
        pool: CheckpointPool,
        database: TenantDatabase,
        owner: Owner,
        fence: Fence,
        thread_id: UUID,
        observer: SaverObserver,
        head: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(pool, database, owner)
        self._fence = fence
        self._thread_id = str(thread_id)
        self._head = head
        if head is not None and head["checkpoint_id"]:
            observe(head["checkpoint_id"])  # also where the run begins at an earlier one
        self._observer = observer
        self.is_interrupted = False
        """Whether the newest step stopped at an interrupt."""
        self._holds: dict[tuple[str, str], bool] = {}
        self._batch = CheckpointBatch()
        self._waiting: list[asyncio.Future[None]] = []
        self._due: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._closed = False
        self._unfinished = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The thread's checkpoint; the first time from ``head``, which was read with the run."""
        head, self._head = self._head, None
        if head is None or config["configurable"].get("checkpoint_ns") or get_checkpoint_id(config):
            found = await super().aget_tuple(config)
        else:
            found = await self._load_checkpoint_tuple(dict(head)) if head["checkpoint_id"] else None
        if found is not None:
            changed = any(_changes_state(*write[:2]) for write in found.pending_writes or ())
            self._holds.setdefault(_key(found.config), not changed)
        return found

    def holds(self, namespace: str, checkpoint_id: str) -> bool | None:
        """Whether a checkpoint that the run came by holds what its graph does.

        None: it is not stored yet. False: the graph has applied writes that came after it.
        """
        return self._holds.get((namespace, checkpoint_id))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint."""
        if not config["configurable"].get("checkpoint_ns"):
            self.is_interrupted = False
            if metadata.get("source") == "loop":
                self._observer.step_ended()
        return await super().aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes; an exception's text, which may quote people, is left out."""
        kept = [(c, type(v).__name__) if c == ERROR else (c, v) for c, v in writes]
        if any(channel == INTERRUPT for channel, _ in writes):
            self.is_interrupted = True
        if any(_changes_state(task_id, channel) for channel, _ in writes):
            self._holds[_key(config)] = False
        await super().aput_writes(config, kept, task_id, task_path)

    async def close(self) -> None:
        """Store what was handed in, and refuse the rest: strays come even after a cancel."""
        self._closed = True
        await self._idle.wait()
        self._write_now()
        while self._writing is not None:
            await asyncio.wait([self._writing])

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        if not pipeline:
            async with super()._cursor() as cursor:
                yield cursor
            return
        if self._closed:
            raise LeaseLost("The run is over.")
        collected = BatchCursor()
        with self._collecting():
            yield collected
        if not collected.threads() <= {self._thread_id}:
            raise RunTrespassed
        before = len(self._batch.checkpoints)
        collected.hand_over(self._batch)
        await self._written(urgent=len(self._batch.checkpoints) > before)

    @contextmanager
    def _collecting(self) -> Iterator[None]:
        self._unfinished += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._unfinished -= 1
            if not self._unfinished:
                self._idle.set()

    def _written(self, *, urgent: bool) -> asyncio.Future[None]:
        """Resolves when what was collected so far is committed."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(done)
        if urgent:
            self._write_now()
        elif self._due is None:
            self._due = loop.call_later(PILE_UP_SECONDS, self._write_now)
        return done

    def _write_now(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._writing is None and self._waiting:
            self._writing = asyncio.create_task(self._write_batches())

    async def _write_batches(self) -> None:
        try:
            while self._waiting:
                batch, self._batch = self._batch, CheckpointBatch()
                waiting, self._waiting = self._waiting, []
                await self._write_for(waiting, batch)
        finally:
            self._writing = None

    async def _write_for(self, waiting: list[asyncio.Future[None]], batch: CheckpointBatch) -> None:
        try:
            await self._write(batch)
            self._holds.update(dict.fromkeys(batch.checkpoints, True))
            self._observer.committed()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits, and to the run
            _fail(waiting, error)
            self._observer.failed(error)
        else:
            _succeed(waiting)

    async def _write(self, batch: CheckpointBatch) -> None:
        if not batch:
            return
        fence = (self._fence.run_id, self._fence.number)
        await while_database_is_away(
            self._database.call, self._owner, _WRITE, *fence, *batch.arguments()
        )


def _key(config: RunnableConfig) -> tuple[str, str]:
    configurable = config["configurable"]
    return configurable.get("checkpoint_ns", ""), configurable["checkpoint_id"]


def _changes_state(task_id: str, channel: str) -> bool:
    """Whether a write is applied to its checkpoint's state: a command's update is."""
    return task_id == _NO_TASK and channel not in WRITES_IDX_MAP


def _succeed(waiting: list[asyncio.Future[None]]) -> None:
    for done in waiting:
        if not done.done():
            done.set_result(None)


def _fail(waiting: list[asyncio.Future[None]], error: Exception) -> None:
    for done in waiting:
        if not done.done():
            done.set_exception(error)
            done.exception()  # looked at: a waiter that was cancelled must not cause a warning
