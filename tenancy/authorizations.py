"""The rows of OAuth authorizations under way."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

AUTHORIZATION_SECONDS = 600.0
"""How long a person may take to say yes."""
MOST_AUTHORIZATIONS = 10
"""Of one person, under way at once."""

Begun = Literal["kept", "unknown", "stale"]
"""``unknown``: the user has no such server any more; ``stale``: to be sealed again."""

_BEGIN = "SELECT tenant.begin_authorization($1, $2, $3, $4, $5, $6, $7)"
_TAKE = "SELECT * FROM tenant.take_authorization($1, $2)"


@dataclass(frozen=True, slots=True)
class TakenRow:
    """What was kept, and the version that the connection has now."""

    sealed: bytes = field(repr=False)
    version: int


async def begin_authorization(
    database: TenantDatabase,
    owner: Owner,
    server: str,
    state_hash: bytes,
    sealed: bytes,
    *,
    is_own: bool,
) -> Begun:
    """Put an authorization under way, if it can be."""
    about = (server, is_own, state_hash, sealed, AUTHORIZATION_SECONDS, MOST_AUTHORIZATIONS)
    (row,) = await database.call(owner, _BEGIN, *about)
    return row[0]  # type: ignore[no-any-return]


async def take_authorization(
    database: TenantDatabase, owner: Owner, state_hash: bytes
) -> TakenRow | None:
    """Take an authorization of the user's, once; None where there is none."""
    rows = await database.call(owner, _TAKE, state_hash)
    return TakenRow(rows[0]["sealed"], rows[0]["version"]) if rows else None
