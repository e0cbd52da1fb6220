"""LISTEN and NOTIFY: hints for speed, never the truth.

Payloads are opaque ids only, since they cross users. NOTIFY goes out on its own connection,
after the commit that it speaks of (inside it, it takes a database-wide lock: 2,206 instead of
8,355 transactions a second), batched while one is under way. Whoever listens also polls.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import asyncpg
import structlog
from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from tenancy.database.engine import DRIVER_ERRORS, LoginRefused, login_refused, translated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from tenacity import RetryCallState

    from tenancy.principal import UserId

log = structlog.get_logger(__name__)

RUN_QUEUED = "stoa_run_queued"
"""A run may be claimable. No payload: whoever has room asks the queue."""
RUN_CHANGED = "stoa_run_changed"
"""Runs have new events or a new state. Payload: ``user/run`` keys, comma-separated."""

RUN_STOPPED = "stoa_run_stopped"
"""Runs were told to stop, or are gone. Payload as above: their worker looks at what it holds."""

SEAT_GRANTED = "stoa_seat_granted"
"""Model calls were given a seat, which is theirs for two seconds. Payload: their ids."""

APPROVAL_CHANGED = "stoa_approval_changed"
"""What runs ask their people was asked, decided, or is over. Payload: ``user/run`` keys."""

CONNECTION_CHANGED = "stoa_connection_changed"
"""Something about a person's connection to a tool server. Payload: ``user/connection`` keys."""

CONNECTION_REVOKED = "stoa_connection_revoked"
"""A connection's credential is not to be used any more. Payload as above: who has it open closes
it. Who does not hear of it makes no call with it all the same: each looks at the row before."""

CHECK_WANTED = "stoa_check_wanted"
"""A person wants to know how a tool server stands. No payload: whoever has room asks for it."""

USER_CHANGED = "stoa_user_changed"
"""People are suspended, are back, leave, or have left. Payload: their ids. Whoever works for them
looks whether to go on, and forgets what was known of them."""

_WITH_KEYS = (
    *(SEAT_GRANTED, USER_CHANGED, RUN_STOPPED, RUN_CHANGED, APPROVAL_CHANGED),
    *(CONNECTION_REVOKED, CONNECTION_CHANGED),
)
"""In the order in which they are sent."""
MOST_KEYS = 100
"""Keys per notification: 100 times 74 characters stay below Postgres' 8,000 bytes."""
_SPACING_SECONDS = 0.004
"""After a notification, wait this long and send together what came meanwhile."""
_ASK_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
"""How often a connection that only listens is asked whether it lives, and how long it may take."""
_RECONNECT = (*DRIVER_ERRORS, OSError, TimeoutError)


async def _connect_once(dsn: str) -> asyncpg.Connection:
    return await asyncpg.connect(
        dsn, timeout=10, server_settings={"application_name": "stoa signals"}
    )


async def _connect(dsn: str) -> asyncpg.Connection:
    """Connect, however long it takes the database to come back."""
    async for attempt in AsyncRetrying(
        retry=retry_if_exception_type(_RECONNECT),
        wait=wait_random_exponential(0.1, max=3),
        before_sleep=_log_attempt,
    ):
        with attempt:
            return await _connect_once(dsn)
    raise AssertionError


def _log_attempt(attempt: RetryCallState) -> None:
    error = attempt.outcome.exception() if attempt.outcome is not None else None
    log.warning("signals cannot connect", error=type(error).__name__)


class Announcer:
    """Sends notifications from one task on one connection, merging what piles up meanwhile."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._bare: set[str] = set()
        self._keys: dict[str, deque[str]] = {channel: deque() for channel in _WITH_KEYS}
        self._wanted = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def run_queued(self) -> None:
        """Say that a committed run waits in the queue."""
        self._say_bare(RUN_QUEUED)

    def run_changed(self, key: str) -> None:
        """Say that something about the run ``user/run`` was committed."""
        self._say(RUN_CHANGED, key)

    def run_stopped(self, key: str) -> None:
        """Say that the run ``user/run`` was told to stop, or deleted."""
        self._say(RUN_STOPPED, key)

    def seat_granted(self, call_id: UUID) -> None:
        """Say that a model call of another worker's was given a seat."""
        self._say(SEAT_GRANTED, str(call_id))

    def approval_changed(self, key: str) -> None:
        """Say that something was committed about what the run ``user/run`` asks."""
        self._say(APPROVAL_CHANGED, key)

    def connection_changed(self, key: str) -> None:
        """Say that something about the connection ``user/connection`` was committed."""
        self._say(CONNECTION_CHANGED, key)

    def connection_revoked(self, key: str) -> None:
        """Say that the connection ``user/connection`` has another credential now, or none."""
        self._say(CONNECTION_REVOKED, key)

    def user_changed(self, user_id: UserId) -> None:
        """Say that a person's state was changed, or that nothing of them is left."""
        self._say(USER_CHANGED, str(user_id))

    def check_wanted(self) -> None:
        """Say that a committed wish to check a connection waits."""
        self._say_bare(CHECK_WANTED)

    async def start(self) -> None:
        """Start the sending task."""
        self._task = asyncio.create_task(self._send_for_ever(), name="announcer")

    async def stop(self) -> None:
        """Stop sending; hints not yet sent are lost, which costs others one poll."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _send_for_ever(self) -> None:
        connection: asyncpg.Connection | None = None
        try:
            while True:
                await self._wanted.wait()
                self._wanted.clear()
                try:
                    connection = connection or await _connect(self._dsn)
                    await self._send(connection)
                    await asyncio.sleep(_SPACING_SECONDS)
                except _RECONNECT as error:
                    log.warning("announcer lost its connection", error=type(error).__name__)
                    connection = None
        finally:
            if connection is not None:
                connection.terminate()

    async def _send(self, connection: asyncpg.Connection) -> None:
        await self._send_bare(connection, RUN_QUEUED)
        for channel, waiting in self._keys.items():
            while waiting:
                keys = [waiting.popleft() for _ in range(min(MOST_KEYS, len(waiting)))]
                await _notify(connection, channel, ",".join(keys))
        # After the keys: what is to be checked should not be let go of a moment later.
        await self._send_bare(connection, CHECK_WANTED)

    async def _send_bare(self, connection: asyncpg.Connection, channel: str) -> None:
        if channel in self._bare:
            self._bare.discard(channel)
            await _notify(connection, channel, "")

    def _say_bare(self, channel: str) -> None:
        self._bare.add(channel)
        self._wanted.set()

    def _say(self, channel: str, key: str) -> None:
        if key not in self._keys[channel]:
            self._keys[channel].append(key)
        self._wanted.set()


async def _notify(connection: asyncpg.Connection, channel: str, payload: str) -> None:
    await connection.execute("SELECT pg_notify($1, $2)", channel, payload, timeout=_ANSWER_SECONDS)


class Listener:
    """Holds one LISTEN connection and reconnects when it breaks.

    Each channel has its own ``heard(payload)``, called for each notification, and as
    ``heard(None)`` after every (re)connect: anything may have been missed, so everyone should look.
    """

    def __init__(self, dsn: str, channels: Mapping[str, Callable[[str | None], None]]) -> None:
        self._dsn = dsn
        self._channels = channels
        self._task: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    async def start(self) -> None:
        """Start listening; returns once the subscription stands.

        Raises:
            LoginRefused: there is no such role or database, or the password is wrong.
            DatabaseUnavailable: Postgres cannot be reached. It is tried once, so that a wrong
                address ends a start instead of holding it for ever.
        """
        try:
            connection = await _connect_once(self._dsn)
        except _RECONNECT as error:
            domain_error = translated(error)
            if isinstance(domain_error, LoginRefused):
                domain_error = login_refused(self._dsn)
            raise domain_error or error from error
        self._task = asyncio.create_task(self._listen_for_ever(connection), name="listener")
        await self._ready.wait()

    async def stop(self) -> None:
        """Stop listening and close the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _listen_for_ever(self, connection: asyncpg.Connection) -> None:
        while True:
            closed = asyncio.Event()
            try:
                connection.add_termination_listener(_setting(closed))
                for channel in self._channels:
                    await connection.add_listener(channel, self._hear)
                self._ready.set()
                for heard in self._channels.values():
                    heard(None)
                await _until_lost(connection, closed)
                log.warning("listener lost its connection", channels=list(self._channels))
            except _RECONNECT as error:
                log.warning("listener failed", error=type(error).__name__)
            finally:
                connection.terminate()
            connection = await _connect(self._dsn)

    def _hear(self, _connection: object, _pid: int, channel: str, payload: object) -> None:
        self._channels[channel](str(payload))


async def _until_lost(connection: asyncpg.Connection, closed: asyncio.Event) -> None:
    """Return when the connection has ended; one that was cut without a word is noticed by asking.

    Raises:
        TimeoutError: nobody answers on it.
    """
    while True:
        try:
            async with asyncio.timeout(_ASK_SECONDS):
                await closed.wait()
                return
        except TimeoutError:
            await connection.execute("SELECT 1", timeout=_ANSWER_SECONDS)


def _setting(closed: asyncio.Event) -> Callable[[object], None]:
    return lambda _: closed.set()
