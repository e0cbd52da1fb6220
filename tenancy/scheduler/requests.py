"""The rate of a person's requests: the generic cell rate algorithm, over all web processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import asyncpg

from tenancy.errors import UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner
    from tenancy.scheduler.limits import Limits

WINDOW_SECONDS = 60
"""How many requests are limited within: a whole window's worth may come at once."""

_ADMIT = "SELECT * FROM tenant.admit_request($1, $2)"


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a request is let in, and what its user may use besides."""

    limits: Limits
    """Every limit that is in force for the user."""
    admitted: bool
    remaining: int | None
    """Requests that could follow at once; None without a limit."""
    reset_seconds: float | None
    """When none is counted any more, if none follows."""
    retry_seconds: float | None
    """When one that was refused would be let in."""

    @property
    def quota(self) -> int | None:
        """Requests in a window."""
        quota = self.limits["requests_per_minute"]
        return None if quota is None else int(quota)


async def admit_request(
    database: TenantDatabase, owner: Owner, defaults: Mapping[str, object]
) -> Admission:
    """Count a request. One that is refused is not counted.

    Raises:
        UserUnavailable: the owner is being erased, or gone.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    try:
        (row,) = await database.call(owner, _ADMIT, dict(defaults))
    except asyncpg.ForeignKeyViolationError:  # gone between two statements
        raise UserUnavailable from None
    return Admission(**dict(row.items()))
