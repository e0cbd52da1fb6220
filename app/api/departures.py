"""People who are suspended, or leave: this process forgets who they are, and ends their streams.

Whoever reads on comes back with a new request, which finds out whether they may.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

import structlog

from app.logging import facts_of
from app.stopping import end_task, take_error
from tenancy.errors import StoaError
from tenancy.principal import UserId

if TYPE_CHECKING:
    from app.api.streams import OpenStreams
    from tenancy.identity.directory import UserDirectory

log = structlog.get_logger(__name__)

AGAIN_SECONDS = 2.0
"""After which streams of those who leave are ended once more: a request may have been let in a
moment before. Whoever is suspended may read on at once, and take along what is theirs."""


class Departures:
    """Hears of people whose state was changed. Used on one event loop."""

    def __init__(self, directory: UserDirectory, streams: OpenStreams) -> None:
        self._directory = directory
        self._streams = streams
        self._looking: asyncio.Task[None] | None = None
        self._again: set[asyncio.Task[None]] = set()

    def hear(self, payload: str | None) -> None:
        """These people's state was changed; with None, anybody's may have been: look."""
        if payload is None:
            self._directory.forget_all()
            self._look()
        for each in payload.split(",") if payload else ():
            user_id = UserId(UUID(each))
            self._directory.forget(user_id)
            self._streams.end(user_id)
            again = asyncio.create_task(self._end_again(user_id), name="late departures")
            self._again.add(again)
            again.add_done_callback(self._again.discard)
            again.add_done_callback(take_error)

    async def aclose(self) -> None:
        """Look no further."""
        for task in (*self._again, *((self._looking,) if self._looking is not None else ())):
            await end_task(task)

    def _look(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._end_missed(), name="missed departures")
            self._looking.add_done_callback(take_error)

    async def _end_again(self, user_id: UserId) -> None:
        await asyncio.sleep(AGAIN_SECONDS)
        await self._end_of_leaving(self._streams.readers & {user_id})

    async def _end_missed(self) -> None:
        """End the streams of those who may not read on, of whom nothing was heard."""
        await self._end_of_leaving(self._streams.readers)

    async def _end_of_leaving(self, readers: frozenset[UserId]) -> None:
        for user_id in readers:
            try:
                if await self._directory.is_leaving(user_id):
                    self._streams.end(user_id)
            except StoaError as error:
                log.warning("looking for people who left failed", **facts_of(error))
                return  # the connection will be lost again, or their streams end without it
