"""A person's servers are looked at once for all who ask for them at the same moment."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from app.mentions.one_look import OneLook
from tenancy.database.engine import DatabaseUnavailable

ADA, BOB = (cast("Any", SimpleNamespace(user_id=uuid4())) for _ in range(2))


class Servers:
    """Answers once it may, and notes who was looked for and what was given up."""

    def __init__(self) -> None:
        self.looks: list[object] = []
        self.has_begun = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.was_given_up = asyncio.Event()
        self.fails = False

    async def of(self, owner: Any) -> Any:
        self.looks.append(owner.user_id)
        self.has_begun.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.was_given_up.set()
            raise
        if self.fails:
            raise DatabaseUnavailable
        return (owner.user_id, len(self.looks))


def asking(look: OneLook, *owners: Any) -> list[asyncio.Task[Any]]:
    return [asyncio.create_task(look.of(owner)) for owner in owners]


class TestOneLook:
    async def test_is_shared_by_who_asks_meanwhile_and_by_nobody_else(self) -> None:
        servers = Servers()
        look = OneLook(servers)
        waiting = asking(look, ADA, ADA, ADA, BOB)
        servers.may_answer.set()
        found: Any = await asyncio.gather(*waiting)
        assert [user_id for user_id, _ in found] == [ADA.user_id] * 3 + [BOB.user_id]
        assert servers.looks == [ADA.user_id, BOB.user_id]
        later: Any = await look.of(ADA)
        assert later == (ADA.user_id, 3)

    async def test_goes_on_for_the_others_where_one_gives_up(self) -> None:
        servers = Servers()
        impatient, patient = asking(OneLook(servers), ADA, ADA)
        await servers.has_begun.wait()
        impatient.cancel()
        await asyncio.wait([impatient])
        servers.may_answer.set()
        assert await patient == (ADA.user_id, 1)

    async def test_ends_with_the_last_who_waits(self) -> None:
        servers = Servers()
        look = OneLook(servers)
        waiting = asking(look, ADA, ADA)
        await servers.has_begun.wait()
        for each in waiting:
            each.cancel()
        await servers.was_given_up.wait()
        servers.may_answer.set()
        found: Any = await look.of(ADA)
        assert found == (ADA.user_id, 2)

    async def test_fails_for_all_who_wait_and_not_for_who_asks_again(self) -> None:
        servers = Servers()
        look, servers.fails = OneLook(servers), True
        servers.may_answer.set()
        failed = await asyncio.gather(*asking(look, ADA, ADA), return_exceptions=True)
        assert [type(each) for each in failed] == [DatabaseUnavailable] * 2
        servers.fails = False
        assert await look.of(ADA)
        assert look._looks == {}  # nothing is remembered of anybody
