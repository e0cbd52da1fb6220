"""A LangGraph checkpointer for one user's run, or for reading one user's threads.

What differs from the library's: its connections are tenant-bound, every key begins with the
user, every write ends with the fence's guard in the same transaction, transient failures are
retried (its upserts are idempotent), and a write that fails for good is told to the run's
owner, since LangGraph itself would go on executing nodes.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

from langgraph.checkpoint.postgres import base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from tenancy.checkpoints.pool import CheckpointPool, Fence
    from tenancy.principal import UserId

RETRY_SECONDS = 5.0


def _keyed_by_user(sql: str) -> str:
    changed = sql.replace("ON CONFLICT (thread_id", "ON CONFLICT (user_id, thread_id")
    if changed == sql:
        raise ImportError("langgraph-checkpoint-postgres has changed its upserts")
    return changed


def _thread_id_as_text(sql: str) -> str:
    changed = sql.replace("    thread_id,\n", "    thread_id::text AS thread_id,\n", 1)
    if changed == sql:
        raise ImportError("langgraph-checkpoint-postgres has changed its select")
    return changed


class TenantSaver(AsyncPostgresSaver):
    """One user's checkpoints. With a fence it writes for that run; without, it only reads."""

    UPSERT_CHECKPOINT_BLOBS_SQL = _keyed_by_user(base.UPSERT_CHECKPOINT_BLOBS_SQL)
    UPSERT_CHECKPOINTS_SQL = _keyed_by_user(base.UPSERT_CHECKPOINTS_SQL)
    UPSERT_CHECKPOINT_WRITES_SQL = _keyed_by_user(base.UPSERT_CHECKPOINT_WRITES_SQL)
    INSERT_CHECKPOINT_WRITES_SQL = _keyed_by_user(base.INSERT_CHECKPOINT_WRITES_SQL)
    SELECT_SQL = _thread_id_as_text(base.SELECT_SQL)

    def __init__(
        self,
        pool: CheckpointPool,
        user_id: UserId,
        *,
        fence: Fence | None = None,
        on_failure: Callable[[BaseException], None] | None = None,
    ) -> None:
        super().__init__(conn=None)  # type: ignore[arg-type]  # _cursor below never uses it
        self._pool = pool
        self._user_id = user_id
        self._fence = fence
        self._on_failure = on_failure
        self._writes = _Writes()

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint under the fence; see the library for the arguments."""
        async with self._writing():
            async for attempt in _retrying():
                with attempt:
                    return await super().aput(config, checkpoint, metadata, new_versions)
        raise AssertionError

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store a task's writes under the fence; see the library for the arguments."""
        async with self._writing():
            async for attempt in _retrying():
                with attempt:
                    await super().aput_writes(config, writes, task_id, task_path)

    async def close(self) -> None:
        """Wait for writes in flight and refuse later ones: LangGraph sends strays after a cancel."""
        await self._writes.close()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        with self._writes:
            try:
                yield
            except Exception as error:
                if self._on_failure is not None:
                    self._on_failure(error)
                raise

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        """The library's one way to the database; ``pipeline`` is how it marks its writes."""
        if pipeline and self._fence is None:
            raise LeaseLost("A saver without a fence only reads.")
        async with self._pool.transaction(
            self._user_id, fence=self._fence if pipeline else None, write=pipeline
        ) as cursor:
            yield cursor


class _Writes:
    """Counts writes in flight; once closed, no new one starts."""

    def __init__(self) -> None:
        self._count = 0
        self._closed = False
        self._idle = asyncio.Event()
        self._idle.set()

    def __enter__(self) -> Self:
        if self._closed:
            raise LeaseLost("The run is over.")
        self._count += 1
        self._idle.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._count -= 1
        if not self._count:
            self._idle.set()

    async def close(self) -> None:
        self._closed = True
        await self._idle.wait()


def _retrying() -> AsyncRetrying:
    return AsyncRetrying(
        retry=retry_if_exception_type(DatabaseUnavailable),
        stop=stop_after_delay(RETRY_SECONDS),
        wait=wait_random_exponential(0.05, max=1),
        reraise=True,
    )
