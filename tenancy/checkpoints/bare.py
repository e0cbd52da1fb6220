"""LangGraph's own saver, as its documentation has it: bound to nobody, to measure against."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool


@asynccontextmanager
async def bare_savers(
    dsn: str, connections: int
) -> AsyncIterator[Callable[[], AsyncPostgresSaver]]:
    """Create the library's tables in an empty database; yield what makes savers over one pool."""
    async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
        await saver.setup()
    pool: AsyncConnectionPool[AsyncConnection[DictRow]] = AsyncConnectionPool(
        dsn,
        min_size=connections,
        max_size=connections,
        open=False,
        kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row},
    )
    async with pool:
        yield lambda: AsyncPostgresSaver(pool)
