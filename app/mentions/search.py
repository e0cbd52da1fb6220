"""Asks all sources at once, and waits for none of them longer than a person would."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import structlog

from app.mentions.sources import Found, Source, SourceFailed, Status
from tenancy.errors import LimitReached, TooManyRequests

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from app.mentions.sources import Asked
    from tenancy.principal import Owner, UserId

log = structlog.get_logger(__name__)

SECONDS = 1.5
"""How long one source may take, its turn included."""
AT_ONCE = 4
LONGEST_TITLE = 200
LONGEST_URL = 500


@dataclass(frozen=True, slots=True)
class Group:
    """What one source has found, or why it has not."""

    source: Source
    status: Status
    results: Sequence[Found] = ()


@dataclass(slots=True)
class _Turn:
    """Whose turn it is to ask a source for one person, and how many want it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class MentionSearch:
    """Finds what a person may mention. What goes wrong in a source stays there."""

    def __init__(self, sources: Sequence[Source], *, seconds: float = SECONDS) -> None:
        self._sources = tuple(sources)
        self._seconds = seconds
        self._turns: dict[tuple[UserId, str], _Turn] = {}

    async def find(self, asked: Asked) -> list[Group]:
        """A group of each source, in their order; nothing is found twice.

        Whoever gives up on this gives up on the sources with it.
        """
        room = asyncio.Semaphore(AT_ONCE)

        async def ask(source: Source) -> Group:
            return await self._in_time(source, asked, room)

        async with asyncio.TaskGroup() as group:
            asking = [group.create_task(ask(source)) for source in self._sources]
        return _each_once([task.result() for task in asking])

    async def _in_time(self, source: Source, asked: Asked, room: asyncio.Semaphore) -> Group:
        try:
            async with asyncio.timeout(self._seconds), self._turn(asked.owner, source), room:
                found = await source.find(asked)
            return Group(source, "ok", tuple(_bounded(each) for each in found[: asked.limit]))
        except Exception as error:  # noqa: BLE001 - of one source: the others' answers stand
            status = _status_of(error)
        if status not in ("not_configured", "unsupported_scope"):
            log.warning(
                "a source of mentions failed",
                source=source.source,
                provider=source.provider,
                kind=source.kind,
                status=status,
            )
        return Group(source, status)

    @asynccontextmanager
    async def _turn(self, owner: Owner, source: Source) -> AsyncIterator[None]:
        """One question to a source at a time, for one person: who types fast asks often."""
        key = (owner.user_id, source.source)
        turn = self._turns.setdefault(key, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if turn.wanted == 0:
                del self._turns[key]


def _status_of(error: Exception) -> Status:
    match error:
        case SourceFailed(status=status):
            return status
        case TimeoutError():
            return "timeout"
        case LimitReached() | TooManyRequests():
            return "rate_limited"
        case _:
            return "upstream_error"


def _bounded(found: Found) -> Found:
    """Titles of others may have any length, and addresses."""
    title = " ".join(found.title.split())
    shown = title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 1]}…"
    url = found.url if found.url is not None and len(found.url) <= LONGEST_URL else None
    return replace(found, title=shown, url=url)


def _each_once(groups: list[Group]) -> list[Group]:
    seen: set[str] = set()
    kept: list[Group] = []
    for group in groups:
        results = []
        for found in group.results:
            if str(found.ref) not in seen:
                seen.add(str(found.ref))
                results.append(found)
        kept.append(Group(group.source, group.status, tuple(results)))
    return kept
