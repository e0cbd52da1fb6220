"""Calls of database functions, each its own transaction in one round trip.

The hot path of a run. Straight through asyncpg, since SQLAlchemy's checkout, BEGIN and COMMIT
cost more than the functions do (0.36 ms of CPU against 0.12). Single statements only: nothing
that a session would have to be cleaned of can be left behind.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import asyncpg

from tenancy.database.engine import DRIVER_ERRORS, server_settings, translated

if TYPE_CHECKING:
    from tenancy.database.engine import DatabaseSettings


_CLOSING_SECONDS = 1.0


class FunctionCalls:
    """A pool of connections that only ever call functions."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._settings = settings
        self._pool: asyncpg.Pool | None = None
        self._opening = asyncio.Lock()
        self._free = asyncio.Semaphore(settings.pool_size)

    async def fetch(self, statement: str, *arguments: Any) -> list[asyncpg.Record]:  # noqa: ANN401
        """Run one statement and return its rows.

        Raises:
            LeaseLost, UserUnavailable, DatabaseUnavailable: as the function or the driver says.
        """
        try:
            pool = self._pool or await self._open()
            async with self._turn(), pool.acquire() as connection:
                return await connection.fetch(statement, *arguments)  # type: ignore[no-any-return]
        except (*DRIVER_ERRORS, OSError, TimeoutError) as error:
            raise translated(error) or error from error

    async def close(self) -> None:
        """Close every connection."""
        if self._pool is not None:
            with suppress(TimeoutError):  # a dead connection would not let itself be closed
                async with asyncio.timeout(_CLOSING_SECONDS):
                    await self._pool.close()
            self._pool.terminate()
            self._pool = None

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for a connection to be free, first come first served.

        The pool alone lets a newcomer take what a waiter was just woken for: at 50 runs in
        flight some waited for two seconds.
        """
        async with asyncio.timeout(self._settings.acquire_timeout if self._free.locked() else None):
            await self._free.acquire()
        try:
            yield
        finally:
            self._free.release()

    async def _open(self) -> asyncpg.Pool:
        async with self._opening:
            if self._pool is None:
                self._pool = await asyncpg.create_pool(
                    self._settings.dsn,
                    min_size=0,
                    max_size=self._settings.pool_size,
                    timeout=self._settings.connect_timeout,
                    command_timeout=self._settings.command_timeout,
                    statement_cache_size=100 if self._settings.prepared_statements else 0,
                    server_settings=server_settings(self._settings),
                    init=_json_codec,
                    reset=_nothing_to_reset,
                )
        return self._pool


async def _json_codec(connection: asyncpg.Connection) -> None:
    await connection.set_type_codec(
        "jsonb",
        schema="pg_catalog",
        encoder=json.dumps,
        decoder=json.loads,
    )


async def _nothing_to_reset(connection: asyncpg.Connection) -> None:
    """Single statements leave no session state, so the usual reset would be a wasted trip."""
