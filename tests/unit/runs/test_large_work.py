"""Large work takes turns, and one person's stands in line once."""

from __future__ import annotations

import asyncio
import threading
from uuid import uuid4

import pytest

from app.runs.large_work import in_turn
from tenancy.principal import UserId


def a_person() -> UserId:
    return UserId(uuid4())


class Work:
    """Work that lasts until it is let go, and says in what order it was begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.at_once = self.most_at_once = 0
        self.go = threading.Event()

    def do(self, name: str) -> str:
        self.begun.append(name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        assert self.go.wait(60)
        self.at_once -= 1
        return name


async def test_one_person_s_large_work_holds_one_place_in_the_line() -> None:
    work, mallory, alice = Work(), a_person(), a_person()
    names = ("m1", "m2", "m3", "m4")
    tasks = [asyncio.create_task(in_turn(mallory, work.do, name)) for name in names]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(in_turn(alice, work.do, "a")))
    await asyncio.sleep(0)
    work.go.set()
    assert await asyncio.gather(*tasks) == [*names, "a"]
    assert work.begun == ["m1", "a", "m2", "m3", "m4"]
    assert work.most_at_once == 1


async def test_who_leaves_in_the_middle_lets_nobody_work_beside_it() -> None:
    work = Work()
    left = asyncio.create_task(in_turn(a_person(), work.do, "left"))
    while not work.begun:  # noqa: ASYNC110 - a thread tells
        await asyncio.sleep(0.001)
    left.cancel()
    following = asyncio.create_task(in_turn(a_person(), work.do, "next"))
    await asyncio.sleep(0.01)
    assert work.begun == ["left"]
    work.go.set()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await following == "next"
    assert work.most_at_once == 1
