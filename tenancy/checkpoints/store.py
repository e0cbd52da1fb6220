"""A LangGraph store for one user: the user's id is the fixed first part of every namespace.

There is one per run (or request): a shared one, whose user came from the context, leaked
across users, since its background task merges different callers' operations. This one has no
background task; each operation is its own tenant-bound transaction, under the run's fence
where it writes.

Beside that, it differs from the library's in three things: a search with a query looks for words
(``tenancy/sql/recall.sql``), values are compared as JSON has them, and what has expired is gone.
"""

from __future__ import annotations

import asyncio
import json
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

from tenancy.checkpoints.memories import MEMORIES, require_memory
from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

    from langgraph.store.base import Op
    from psycopg import AsyncCursor
    from psycopg.rows import DictRow

    from tenancy.checkpoints.pool import CheckpointPool, Fence
    from tenancy.principal import UserId

_BEGIN_ORIGIN = "SELECT tenant.begin_origin(%s)"
_BEGIN_GROWTH = "SELECT tenant.begin_growth(%s)"
_REQUIRE_MEMORY = "SELECT tenant.require_memory(%s, %s)"
_EVERY_ROW = 2**31 - 1
_FOUND = """
    SELECT found.prefix, found.key, found.value, found.created_at, found.updated_at, ranked.score
    FROM ({found}) found
    JOIN tenant.ranked_items(%s::uuid, %s, true, %s, NULL, NULL) ranked USING (prefix, key)
    ORDER BY ranked.score DESC, found.updated_at DESC, found.prefix, found.key
    LIMIT %s OFFSET %s
"""
_REFRESHED = """
    WITH results AS ({found}),
    refreshed AS (
      UPDATE store s SET expires_at = now() + make_interval(mins => s.ttl_minutes)
      FROM results r
      WHERE (s.prefix, s.key) = (r.prefix, r.key) AND s.ttl_minutes IS NOT NULL
    )
    SELECT r.prefix, r.key, r.value, r.created_at, r.updated_at, r.score FROM results r
"""
_COMPARISONS = {"$eq": "=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}


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
            InvalidInput: what would be kept as a memory is none.
        """
        ops = list(ops)
        for op in ops:
            if isinstance(op, PutOp) and op.namespace == MEMORIES and op.value is not None:
                require_memory(op.key, op.value)
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
        self.ttl_config = {"omit_expired": True}
        self._pool = pool
        self._user_id = user_id
        self._fence = fence

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:  # noqa: ARG002
        async with self._pool.transaction(self._user_id, fence=self._fence, write=True) as cursor:
            if self._fence is not None:
                await cursor.execute(_BEGIN_ORIGIN, (self._fence.run_id,))
            yield cursor

    async def _batch_search_ops(
        self,
        search_ops: Sequence[tuple[int, SearchOp]],
        results: list[Result],
        cur: AsyncCursor[DictRow],
    ) -> None:
        if any(op.query for _, op in search_ops):
            # What the planner expects of one person's rows may be wrong by far.
            await cur.execute("SET LOCAL enable_nestloop = off")
        await super()._batch_search_ops(search_ops, results, cur)

    def _prepare_batch_search_queries(
        self, search_ops: Sequence[tuple[int, SearchOp]]
    ) -> tuple[list[tuple[str, list[Any]]], list[tuple[int, str]]]:
        return [self._search(op) for _, op in search_ops], []

    def _search(self, op: SearchOp) -> tuple[str, list[Any]]:
        """The library's query; with a question, all that it finds, ranked by that."""
        op = op._replace(filter=_spelled_out(op.filter))
        if not op.query:
            ((sql, params),), _ = super()._prepare_batch_search_queries([(0, op)])
            return sql, list(params)
        every = op._replace(query=None, limit=_EVERY_ROW, offset=0, refresh_ttl=False)
        ((found, params),), _ = super()._prepare_batch_search_queries([(0, every)])
        prefix = ".".join(op.namespace_prefix)
        sql = _FOUND.format(found=found)
        if op.refresh_ttl:
            sql = _REFRESHED.format(found=sql)
        return sql, [*params, self._user_id, prefix, op.query, op.limit, op.offset]

    def _get_filter_condition(self, key: str, op: str, value: Any) -> tuple[str, list[Any]]:  # noqa: ANN401 - JSON
        """Compare JSON with JSON: the library's compares numbers as texts, "10" before "9"."""
        said = json.dumps(value)
        if op == "$ne":
            return "value->%s IS DISTINCT FROM %s::jsonb", [key, said]
        if op not in _COMPARISONS:
            raise InvalidInput(f"A filter knows {', '.join((*_COMPARISONS, '$ne'))}, not others.")
        condition = (
            "jsonb_typeof(value->%s) = jsonb_typeof(%s::jsonb)"
            f" AND value->%s {_COMPARISONS[op]} %s::jsonb"
        )
        return condition, [key, said, key, said]


def _spelled_out(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    """A filter in which equality has its operator as well, so that all is compared in one way."""
    if not wanted:
        return None
    return {
        key: value if isinstance(value, dict) else {"$eq": value} for key, value in wanted.items()
    }


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
