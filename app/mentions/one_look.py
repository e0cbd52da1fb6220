"""A person's tool servers, for several who ask for them at once: listings are large to read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.stopping import take_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.connections.standing import UserServer
    from app.mentions.offered import Servers
    from tenancy.principal import Owner, UserId


@dataclass(slots=True)
class _Look:
    """One that is under way, and how many wait for it."""

    task: asyncio.Task[Sequence[UserServer]]
    wanted: int = 0


class OneLook:
    """Looks once for all who ask while it does; who gives up leaves it to the others."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._looks: dict[UserId, _Look] = {}

    async def of(self, owner: Owner) -> Sequence[UserServer]:
        """The servers that the person's runs may use.

        Raises:
            DatabaseUnavailable: Postgres cannot be reached.
        """
        look = self._looks.get(owner.user_id) or self._begin(owner)
        look.wanted += 1
        try:
            return await asyncio.shield(look.task)
        finally:
            look.wanted -= 1
            if look.wanted == 0:
                look.task.cancel()
                self._looks.pop(owner.user_id)

    def _begin(self, owner: Owner) -> _Look:
        look = _Look(asyncio.create_task(self._look(owner), name="look at a person's servers"))
        look.task.add_done_callback(take_error)
        self._looks[owner.user_id] = look
        return look

    async def _look(self, owner: Owner) -> Sequence[UserServer]:
        return await self._servers.of(owner)
