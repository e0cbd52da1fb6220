"""Following a run's log from a web process: subscribe, read, follow.

One LISTEN connection per process wakes the readers; each reader also polls, so a lost hint
costs one interval and nothing else. A reader holds at most one page of events.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING

from app.runs.changes import HeardChanges
from app.runs.events import read_log
from tenancy.database.signals import (
    APPROVAL_CHANGED,
    CONNECTION_CHANGED,
    RUN_CHANGED,
    Listener,
)
from tenancy.errors import RunNotFound

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
    from uuid import UUID

    from app.runs.events import LogPage
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner, UserId

POLL_SECONDS = 5.0
FIRST_CHANGE_SECONDS = 0.05
_LIMITS = "limits"


def run_key(user_id: UserId, run_id: UUID) -> str:
    """The opaque key under which a run's changes are announced."""
    return f"{user_id}/{run_id}"


def thread_key(user_id: UserId, thread_id: UUID) -> str:
    """The opaque key under which a new run of a thread is announced."""
    return f"{user_id}/{thread_id}"


def limits_key(user_id: UserId) -> str:
    """The key under which it is announced that a person may use something else than before."""
    return f"{user_id}/{_LIMITS}"


class RunTail:
    """Lets any number of readers follow runs. One per web process."""

    def __init__(
        self,
        database: TenantDatabase,
        listen_dsn: str,
        also: Mapping[str, Callable[[str | None], None]] | None = None,
    ) -> None:
        """``also`` hears of other channels on the same connection; see ``Listener``."""
        self._database = database
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._people: dict[str, set[HeardChanges]] = defaultdict(set)
        self._listener = Listener(
            listen_dsn,
            {
                RUN_CHANGED: self._wake,
                APPROVAL_CHANGED: self._tell_of_approvals,
                CONNECTION_CHANGED: self._tell_of_connections,
                **(also or {}),
            },
        )

    async def start(self) -> None:
        """Open the LISTEN connection."""
        await self._listener.start()

    async def stop(self) -> None:
        """Close it."""
        await self._listener.stop()

    async def follow(
        self, owner: Owner, run_id: UUID, after: int = 0, *, queued: bool = False
    ) -> AsyncGenerator[LogPage, None]:
        """Yield the log after ``after`` as it is committed, page by page, to the one that ends it.

        With ``queued`` the log is known to have been empty a moment ago: its first change is
        given a moment to come before it is looked for.

        Raises:
            RunNotFound: the run is not the owner's, or was deleted meanwhile.
        """
        with self.subscribed(run_key(owner.user_id, run_id)) as changed:
            if queued:
                await wait_for(changed, FIRST_CHANGE_SECONDS)
            while True:
                changed.clear()
                page = await self._read(owner, run_id, after)
                after = page.events[-1].seq if page.events else after
                ended = page.is_last
                if page.events or ended:
                    yield page
                if ended:
                    return
                if not page.more:
                    del page  # nothing is kept of a log that is only waited for
                    await wait_for(changed, POLL_SECONDS)

    async def _read(self, owner: Owner, run_id: UUID, after: int) -> LogPage:
        page = await read_log(self._database, owner, run_id, after)
        if page is None:
            raise RunNotFound
        return page

    @contextmanager
    def subscribed(self, key: str) -> Iterator[asyncio.Event]:
        """Give an event that is set whenever the run or thread of a key has changed.

        Who clears it before each look, and looks now and then all the same, misses nothing.
        """
        changed = asyncio.Event()
        self._waiting[key].add(changed)
        try:
            yield changed
        finally:
            self._waiting[key].discard(changed)
            if not self._waiting[key]:
                del self._waiting[key]

    @contextmanager
    def all_of(self, user_id: UserId) -> Iterator[HeardChanges]:
        """Listen for whatever changes of a person's runs, approvals, limits and connections."""
        heard = HeardChanges()
        listening = self._people[str(user_id)]
        listening.add(heard)
        try:
            yield heard
        finally:
            listening.discard(heard)
            if not listening:
                del self._people[str(user_id)]

    def listeners(self, user_id: UserId) -> int:
        """How many listen for whatever changes among a person's runs."""
        return len(self._people.get(str(user_id), ()))

    def _wake(self, payload: str | None) -> None:
        keys = list(self._waiting) if payload is None else payload.split(",")
        for key in keys:
            for changed in self._waiting.get(key, ()):
                changed.set()
        if self._people:
            self._tell_people(payload)

    def _tell_people(self, payload: str | None) -> None:
        if payload is None:
            for listening in self._people.values():
                for heard in listening:
                    heard.hear(None)
            return
        for key in payload.split(","):
            user_id, _, what = key.partition("/")
            for heard in self._people.get(user_id, ()):
                heard.hear(None if what == _LIMITS else what)

    def _tell_of_approvals(self, payload: str | None) -> None:
        """Tell whose runs ask something else than before; after a gap, everybody."""
        if payload is None:
            for listening in self._people.values():
                for heard in listening:
                    heard.hear_of_approvals(None)
            return
        for key in payload.split(","):
            user_id, _, run_id = key.partition("/")
            for heard in self._people.get(user_id, ()):
                heard.hear_of_approvals(run_id)

    def _tell_of_connections(self, payload: str | None) -> None:
        """Tell whose connections have changed; after a gap, everybody, as it may be anybody's."""
        people = self._people if payload is None else {_user_of(key) for key in payload.split(",")}
        for user_id in people:
            for heard in self._people.get(user_id, ()):
                heard.hear_of_connections()


def _user_of(key: str) -> str:
    return key.partition("/")[0]


async def wait_for(changed: asyncio.Event, seconds: float = POLL_SECONDS) -> None:
    """Return when something has changed, or when it is time to look anyway."""
    try:
        async with asyncio.timeout(seconds):
            await changed.wait()
    except TimeoutError:
        pass
