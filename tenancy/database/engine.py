"""How engines are made, and how the database's refusals become domain errors."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asyncpg
import psycopg
from sqlalchemy import event, make_url
from sqlalchemy.exc import DBAPIError, DisconnectionError, InterfaceError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import create_async_engine

from tenancy.errors import (
    IdempotencyConflict,
    LeaseLost,
    LimitReached,
    MemoryFull,
    NothingWaits,
    ServiceUnavailable,
    StoaError,
    ThreadBusy,
    ThreadNotFound,
    TokenBudgetExhausted,
    TooManyExports,
    TooManyQueuedRuns,
    TooManyReturns,
    TooManyRuleChanges,
    TooManyThreads,
    UserUnavailable,
)
from tenancy.migrate import driver_url

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.ext.asyncio import AsyncEngine

SQLSTATE_LEASE_LOST = "ST001"
SQLSTATE_NO_TENANT = "ST002"
SQLSTATE_USER_UNAVAILABLE = "ST003"
_REFUSALS: dict[str, type[StoaError]] = {
    SQLSTATE_LEASE_LOST: LeaseLost,
    SQLSTATE_USER_UNAVAILABLE: UserUnavailable,
    "ST004": ThreadBusy,
    "ST005": IdempotencyConflict,
    "ST006": ThreadNotFound,
    "ST009": NothingWaits,
}
"""What functions of ours raise on purpose. ST007, an impossible transition, is a fault of ours."""
SQLSTATE_LIMIT_REACHED = "ST008"
_LIMITS: dict[str, type[LimitReached]] = {
    "queued": TooManyQueuedRuns,
    "threads": TooManyThreads,
    "memory_bytes": MemoryFull,
    "rule_changes_per_hour": TooManyRuleChanges,
    "exports_per_hour": TooManyExports,
    "returns_per_day": TooManyReturns,
    "tokens_per_day": TokenBudgetExhausted,
    "tokens_per_month": TokenBudgetExhausted,
}
"""By the limit's name, which such an error has for its detail; its hint is when to try again."""
_AWAY = ("08", "40", "53", "57", "58", "25P03")
"""SQLSTATE classes: connection exceptions, transactions that were rolled back (a deadlock),
insufficient resources (connections, disk), operator intervention (shutdown, crash, a statement's
timeout), errors of the system below.
And one state: a session that was ended because its process stood still in a transaction."""
_LOGIN_REFUSED = ("28", "3D")
"""SQLSTATE classes: no such role or a wrong password, no such database."""
DRIVER_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""All that asyncpg raises; the last when a connection breaks while an answer comes in."""
_UNREACHABLE = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    psycopg.OperationalError,
    PoolTimeout,
)


class DatabaseUnavailable(ServiceUnavailable):
    """Postgres cannot be reached, or has no connection free in time."""

    code = "database_unavailable"
    message = "The database cannot be reached right now. Try again shortly."

    def __init__(self, message: str | None = None, *, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        """What PostgreSQL itself says is wrong, where it says anything; for logs."""


class LoginRefused(DatabaseUnavailable):
    """Postgres answers, but does not let this process in. At a start, that is a wrong setting."""


class NoTenant(RuntimeError):
    """A statement ran without a user bound to its transaction: a fault of ours, never a zero."""


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How to reach Postgres under one role. Times in seconds."""

    dsn: str
    pool_size: int = 10
    prepared_statements: bool = True
    statement_timeout: float = 30.0
    idle_in_transaction_timeout: float = 10.0
    connect_timeout: float = 10.0
    acquire_timeout: float = 10.0
    application_name: str = "stoa"

    @property
    def command_timeout(self) -> float:
        """When to give up on an answer: the server's time-out ends no dead connection."""
        return self.statement_timeout + 5.0


def create_engine(settings: DatabaseSettings) -> AsyncEngine:
    """An engine whose errors carry no parameters, since those are what people wrote."""
    engine = create_async_engine(
        driver_url(settings.dsn, "asyncpg"),
        hide_parameters=True,
        pool_size=settings.pool_size,
        max_overflow=0,
        pool_timeout=settings.acquire_timeout,
        connect_args={
            "timeout": settings.connect_timeout,
            "command_timeout": settings.command_timeout,
            "statement_cache_size": 100 if settings.prepared_statements else 0,
            "server_settings": server_settings(settings),
        },
    )
    event.listen(engine.sync_engine, "checkout", _assert_open)
    return engine


def _assert_open(adapted: Any, _record: object, _proxy: object) -> None:  # noqa: ANN401 - SQLAlchemy's
    """Have a connection that ended in the pool, as in a restart, replaced by a new one.

    asyncpg knows by itself: asking the server each time would cost a round trip.
    """
    if adapted.driver_connection.is_closed():
        raise DisconnectionError


def login_refused(dsn: str) -> LoginRefused:
    """What to tell an operator whose process is not let in; never the password."""
    url = make_url(dsn)
    return LoginRefused(
        f"The database server refuses a login as {url.username} to the database {url.database}."
        " Check the name and the password in the database URL; `stoa migrate` creates roles that"
        " are missing."
    )


def server_settings(settings: DatabaseSettings) -> dict[str, str]:
    """What every session of ours begins with. Times in milliseconds."""
    return {
        "application_name": settings.application_name,
        "statement_timeout": str(int(settings.statement_timeout * 1000)),
        "idle_in_transaction_session_timeout": str(
            int(settings.idle_in_transaction_timeout * 1000)
        ),
        "jit": "off",
    }


def translated(error: BaseException) -> Exception | None:
    """The domain's error for what a driver raised, or None if it is a fault of ours."""
    state = str(getattr(error, "sqlstate", None) or "")
    if state in _REFUSALS:
        return _REFUSALS[state]()
    if state == SQLSTATE_LIMIT_REACHED:
        return _limit_reached(error)
    if state == SQLSTATE_NO_TENANT:
        return NoTenant("no user is bound to this transaction")
    if state.startswith(_LOGIN_REFUSED):
        return LoginRefused(sqlstate=state)
    if state.startswith(_AWAY) or isinstance(error, _UNREACHABLE):
        return DatabaseUnavailable(sqlstate=state or None)
    return None


def _limit_reached(error: BaseException) -> LimitReached:
    # psycopg keeps what a server says apart; asyncpg has it on the exception.
    said = getattr(error, "diag", None)
    limit = getattr(error, "detail", None) or getattr(said, "message_detail", None)
    seconds = getattr(error, "hint", None) or getattr(said, "message_hint", None)
    return _LIMITS[str(limit)](str(limit), retry_seconds=float(seconds) if seconds else None)


@contextmanager
def domain_errors() -> Iterator[None]:
    """Turn what the database raises on purpose, and its absence, into domain errors."""
    try:
        yield
    except DBAPIError as error:
        # SQLAlchemy puts exceptions of its own around the driver's, some without an SQLSTATE.
        cause = error.orig or error
        known = translated(cause.__cause__ or cause)
        if known is None and (error.connection_invalidated or isinstance(error, InterfaceError)):
            known = DatabaseUnavailable()  # its own words for a connection that is gone
        raise known or error from error
    except DRIVER_ERRORS as error:  # what it lets through, where a connection ends under it
        raise translated(error) or error from error
    except (PoolTimeout, OSError) as error:
        raise DatabaseUnavailable from error
