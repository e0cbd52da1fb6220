"""From a verified identity to the user it belongs to.

The user id is random and says nothing about the person; (issuer, subject) lives in one table,
whose rows are visible only to a transaction that is about that very identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import sqlalchemy as sa

from tenancy.principal import Principal, UserId
from tenancy.tables import users

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from uuid import UUID

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Identity

_CACHE_SIZE = 10_000


@dataclass(frozen=True, slots=True)
class _Somebody:
    """A user of whom no assertion speaks."""

    user_id: UserId


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of an identity: whose it is, or that they have left. Neither of a stranger."""

    user_id: UserId | None
    erasure_id: UUID | None
    """Of somebody who was here last, while that is known."""


class UserDirectory:
    """Maps identities to users, and makes a user at the first sight of an identity.

    ``hashes`` says by what tombstones know an identity, so that whoever left and comes back is
    somebody new without a fresh budget. Without it, nobody is known to have left.
    """

    def __init__(
        self,
        database: TenantDatabase,
        hashes: Callable[[str], Sequence[bytes]] | None = None,
    ) -> None:
        self._database = database
        self._hashes = hashes
        self._known: dict[tuple[str, str, str | None, str | None], UserId] = {}

    async def principal(self, identity: Identity) -> Principal:
        """The principal of a verified identity.

        Raises:
            TooManyReturns: they have left, and come back, too often in a day.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        key = (identity.issuer, identity.subject, identity.name, identity.email)
        user_id = self._known.get(key)
        if user_id is None:
            text = _text(identity)
            user_id = await self._database.sign_in(
                text, UserId(uuid4()), identity.name, identity.email, self._hashes_of(text)
            )
            self._remember(key, user_id)
        return Principal(user_id, identity)

    async def find(self, identity: Identity) -> Found:
        """Who a verified identity is now, without making anybody of it.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        text = _text(identity)
        return Found(*await self._database.find_user(text, self._hashes_of(text)))

    async def is_leaving(self, user_id: UserId) -> bool:
        """Whether a user is being erased, or gone: nothing is done for them any more.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        async with self._database.reading(_Somebody(user_id)) as tx:
            state = await tx.scalar(sa.select(users.c.state))
        return state in (None, "erasing")

    def forget(self, user_id: UserId) -> None:
        """Drop a user from the cache: they were erased, or are not who they were."""
        self._known = {key: known for key, known in self._known.items() if known != user_id}

    def forget_all(self) -> None:
        """Drop everybody: any of them may have been erased."""
        self._known = {}

    def _hashes_of(self, text: str) -> Sequence[bytes]:
        return [] if self._hashes is None else self._hashes(text)

    def _remember(self, key: tuple[str, str, str | None, str | None], user_id: UserId) -> None:
        if len(self._known) >= _CACHE_SIZE:
            del self._known[next(iter(self._known))]
        self._known[key] = user_id


def _text(identity: Identity) -> str:
    """An identity as it is kept. No issuer's name has an end of line in it."""
    return f"{identity.issuer}\n{identity.subject}"
