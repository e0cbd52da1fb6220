"""One person's requests take turns."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from app.api.turns import AT_ONCE, MOST_WAITING, RequestTurns
from tenancy.errors import TooManyRequests
from tenancy.principal import UserId


class Requests:
    """Requests that stay until they are let go."""

    def __init__(self, turns: RequestTurns) -> None:
        self._turns = turns
        self._answered = asyncio.Event()
        self.worked_on = 0
        self.tasks: list[asyncio.Task[None]] = []

    async def send(self, user_id: UserId, count: int) -> None:
        self.tasks += [asyncio.create_task(self._request(user_id)) for _ in range(count)]
        await asyncio.sleep(0)

    async def answer(self) -> list[BaseException | None]:
        self._answered.set()
        return list(await asyncio.gather(*self.tasks, return_exceptions=True))

    async def _request(self, user_id: UserId) -> None:
        async with self._turns.turn(user_id):
            self.worked_on += 1
            await self._answered.wait()


@pytest.fixture
def requests() -> Requests:
    return Requests(RequestTurns())


class TestManyRequestsOfOnePerson:
    async def test_are_worked_on_a_few_at_a_time_and_all_answered(self, requests: Requests) -> None:
        await requests.send(UserId(uuid4()), 3 * AT_ONCE)
        assert requests.worked_on == AT_ONCE
        assert set(await requests.answer()) == {None}
        assert requests.worked_on == 3 * AT_ONCE

    async def test_hold_up_nobody_else(self, requests: Requests) -> None:
        await requests.send(UserId(uuid4()), 3 * AT_ONCE)
        await requests.send(UserId(uuid4()), 1)
        assert requests.worked_on == AT_ONCE + 1
        await requests.answer()

    async def test_are_refused_beyond_what_may_wait(self, requests: Requests) -> None:
        person = UserId(uuid4())
        await requests.send(person, AT_ONCE + MOST_WAITING)
        await requests.send(person, 1)
        ends = await requests.answer()
        assert [type(end) for end in ends if end is not None] == [TooManyRequests]
