"""Files are made of one conversation at a time, and people take turns."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from app.export.conversation import Conversations
from app.export.headings import Heading
from tenancy.principal import Identity, Principal, UserId

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)


class SlowHistory:
    """Whose threads are read, and how many at once; each takes until it is let go on."""

    def __init__(self) -> None:
        self.read: list[UserId] = []
        self.at_once = 0
        self.go_on = asyncio.Semaphore(0)

    async def state(self, owner: Principal, _thread_id: UUID) -> dict[str, Any]:
        self.read.append(owner.user_id)
        self.at_once += 1
        assert self.at_once == 1
        await self.go_on.acquire()
        self.at_once -= 1
        return {"values": {"messages": []}, "interrupts": []}


def somebody(name: str) -> Principal:
    return Principal(UserId(uuid4()), Identity("issuer", name, MOMENT))


class TestConversations:
    async def test_of_many_people_are_read_in_turn(self) -> None:
        history = SlowHistory()
        conversations = Conversations(history)  # type: ignore[arg-type]
        greedy, other = somebody("greedy"), somebody("other")
        asked = [
            asyncio.create_task(
                conversations.files(who, Heading(uuid4(), "Trains", MOMENT, MOMENT))
            )
            for who in (greedy, greedy, greedy, other)
        ]
        for _ in asked:
            history.go_on.release()
        await asyncio.gather(*asked)
        assert history.read[:2] == [greedy.user_id, other.user_id]
        assert len(history.read) == 4
