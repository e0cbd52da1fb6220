"""Whose data keys are under which key-encryption key: counted under the maintenance role.

The role reads versions, ids and times, and no key. Only ``app.admin`` uses it (a contract in
``pyproject.toml`` says so).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from tenancy.database.calls import FunctionCalls
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenancy.database.engine import DatabaseSettings

_OVERVIEW = "SELECT wrapping_key, users, data_keys FROM tenant.vault_overview()"
_TO_REKEY = "SELECT user_id FROM tenant.users_to_rekey($1, $2, $3, $4)"
_BATCH = 500
_BEFORE_ALL = UUID(int=0)


@dataclass(frozen=True, slots=True)
class KeyUse:
    """What is wrapped under one key-encryption key."""

    key_id: str
    users: int
    data_keys: int


@dataclass(frozen=True, slots=True)
class KeyOwner:
    """A user who has data keys."""

    user_id: UserId


class VaultOverview:
    """Finds what is to be done. It only reads."""

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def in_use(self) -> list[KeyUse]:
        """The key-encryption keys that something is wrapped under, by id."""
        return [KeyUse(*row) for row in await self._calls.fetch(_OVERVIEW)]

    async def to_rekey(
        self, newest: str, older_than_seconds: float | None
    ) -> AsyncIterator[KeyOwner]:
        """Users with data keys that are not under ``newest``, that are several, or that are old.

        Suspended ones too, but nobody who is being erased.
        """
        after = _BEFORE_ALL
        while True:
            rows = await self._calls.fetch(_TO_REKEY, newest, older_than_seconds, after, _BATCH)
            for row in rows:
                yield KeyOwner(UserId(row[0]))
            if len(rows) < _BATCH:
                return
            after = rows[-1][0]

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
