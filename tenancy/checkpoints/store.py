"""A LangGraph store for one user: the user's id is the fixed first part of every namespace.

There is one per run (or request): a shared one, whose user came from the context, leaked
across users, since its background task merges different callers' operations. This one has no
background task; each operation is its own tenant-bound transaction, under the run's fence
where it writes.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    Result,
    SearchOp,
)
from langgraph.store.postgres.aio import AsyncPostgresStore
from langgraph.store.postgres.base import BasePostgresStore
from psycopg.types.json import Jsonb

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from langgraph.store.base import Op
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from tenancy.checkpoints.pool import CheckpointPool, Fence
    from tenancy.principal import UserId

_BEGIN_GROWTH = "SELECT tenant.begin_growth(%s)"
_REQUIRE_MEMORY = "SELECT tenant.require_memory(%s, %s)"


class TenantStore(BaseStore):
    """One user's items. Namespaces are relative to the user: no other can be named.

    ``limits`` are the service's own, for whom no others were set; without any, as much may be kept
    as one likes.
    """

    supports_ttl = True

    def __init__(
        self,
        pool: CheckpointPool,
        user_id: UserId,
        *,
        fence: Fence | None = None,
        limits: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__()
        self._scope = str(user_id)
        self._rows = _StoreRows(pool, user_id, fence)
        self._growing = self._rows if limits is None else _GrowingRows(pool, user_id, fence, limits)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations of this user, in one transaction.

        Raises:
            MemoryFull: the user would keep more than they may; nothing was written.
        """
        scoped = [self._scoped(op) for op in ops]
        grows = any(isinstance(op, PutOp) and op.value is not None for op in scoped)
        results = await (self._growing if grows else self._rows).abatch(scoped)
        return [self._relative(result) for result in results]

    def batch(self, ops: Iterable[Op]) -> list[Result]:  # noqa: ARG002
        """Not offered: graphs run on the event loop, where it would block every other run.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError("Use the store's async methods (aget, aput, asearch, …).")

    def _scoped(self, op: Op) -> Op:
        if isinstance(op, GetOp | PutOp):
            return op._replace(namespace=(self._scope, *op.namespace))
        if isinstance(op, SearchOp):
            return op._replace(namespace_prefix=(self._scope, *op.namespace_prefix))
        if isinstance(op, ListNamespacesOp):
            return self._scoped_listing(op)
        raise TypeError(f"unknown store operation {type(op).__name__}")

    def _scoped_listing(self, op: ListNamespacesOp) -> ListNamespacesOp:
        conditions = [MatchCondition("prefix", (self._scope,))]
        for condition in op.match_conditions or ():
            conditions += self._scoped_conditions(condition)
        depth = None if op.max_depth is None else op.max_depth + 1
        return op._replace(match_conditions=tuple(conditions), max_depth=depth)

    def _scoped_conditions(self, condition: MatchCondition) -> list[MatchCondition]:
        if condition.match_type == "prefix":
            return [condition._replace(path=(self._scope, *condition.path))]
        # A suffix could reach the scope itself: as many labels as it has must come after that.
        labels = ("*",) * len(condition.path)
        return [condition, MatchCondition("prefix", (self._scope, *labels))]

    def _relative(self, result: Result) -> Result:
        if isinstance(result, Item):
            result.namespace = result.namespace[1:]
        elif isinstance(result, list):
            return cast("Result", [self._relative_entry(entry) for entry in result])
        return result

    @staticmethod
    def _relative_entry(entry: Any) -> Any:  # noqa: ANN401 - a found item or a namespace
        if isinstance(entry, tuple):
            return entry[1:]
        entry.namespace = entry.namespace[1:]
        return entry


class _StoreRows(AsyncPostgresStore):
    """The library's SQL on tenant-bound transactions, without its batching task."""

    def __init__(self, pool: CheckpointPool, user_id: UserId, fence: Fence | None) -> None:
        # Not the library's __init__: it starts a background task and wants a connection.
        BasePostgresStore.__init__(self)
        self._task = None
        self._deserializer = None
        self.pipe = None
        self.lock = asyncio.Lock()
        self.index_config = None
        self.embeddings = None
        self.ttl_config = None
        self._pool = pool
        self._user_id = user_id
        self._fence = fence

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:  # noqa: ARG002
        async with self._pool.transaction(self._user_id, fence=self._fence, write=True) as cursor:
            yield cursor


class _GrowingRows(_StoreRows):
    """The same where something is added, of which there may not be too much."""

    def __init__(
        self,
        pool: CheckpointPool,
        user_id: UserId,
        fence: Fence | None,
        limits: Mapping[str, object],
    ) -> None:
        super().__init__(pool, user_id, fence)
        self._limits = Jsonb(dict(limits))

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        async with super()._cursor(pipeline=pipeline) as cursor:
            await cursor.execute(_BEGIN_GROWTH, (self._user_id,))
            yield cursor
            await cursor.execute(_REQUIRE_MEMORY, (self._user_id, self._limits))
