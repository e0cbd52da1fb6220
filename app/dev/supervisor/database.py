"""The embedded database as one of the services of ``stoa dev``."""

from __future__ import annotations

import asyncio
import sys

from app.dev.errors import DevelopmentError
from app.dev.postgres import EmbeddedPostgres
from app.dev.supervisor.backoff import Backoff


class Database:
    """Keeps the database running at the address that the others were given."""

    name = "postgres"

    def __init__(self, postgres: EmbeddedPostgres) -> None:
        self._postgres = postgres

    async def watch(self) -> None:
        """Start it again when it dies.

        Raises:
            DevelopmentError: it does not start, or its port was taken meanwhile.
        """
        backoff = Backoff()
        while True:
            await self._postgres.wait()
            seconds = backoff.died()
            print(f"postgres ended; starting it again in {seconds:g} s.", file=sys.stderr)  # noqa: T201
            await asyncio.sleep(seconds)
            address = self._postgres.dsn()
            await self._postgres.start()
            if self._postgres.dsn() != address:
                raise DevelopmentError(
                    "PostgreSQL's port was taken while it was down. Start `stoa dev` again."
                )
            backoff.born()

    async def stop(self) -> None:
        """End it, after those who use it."""
        await self._postgres.stop()

    def hurry(self) -> None:
        """Make it stop without tidying; the next start replays its log."""
        self._postgres.hurry()
