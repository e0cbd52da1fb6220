"""Trying again while the database is away, for writes that may safely be made twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from tenacity import (
    AsyncRetrying,
    retry_if_exception_type,
    stop_after_delay,
    wait_random_exponential,
)

from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

P = ParamSpec("P")
T = TypeVar("T")

RETRY_SECONDS = 5.0


async def while_database_is_away(
    write: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Make an idempotent write; if the database is away, again for a few seconds.

    Raises:
        DatabaseUnavailable: it stayed away.
    """
    try:
        return await write(*args, **kwargs)
    except DatabaseUnavailable:
        return await AsyncRetrying(
            retry=retry_if_exception_type(DatabaseUnavailable),
            stop=stop_after_delay(RETRY_SECONDS),
            wait=wait_random_exponential(0.05, max=1),
            reraise=True,
        )(write, *args, **kwargs)
