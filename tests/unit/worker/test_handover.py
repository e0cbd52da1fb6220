"""What threads emit reaches the loop in order, and they wait for it, but never for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from app.worker import handover
from app.worker.handover import EventsFlooded, Handover
from app.worker.parts import Part

PATIENCE = 30.0


def part(number: int) -> Part:
    return ((), "custom", number)


def numbers(parts: list[Part]) -> list[int]:
    return [data for _, _, data in parts]


@dataclass
class Bounds:
    """Full from so many on that nobody has made room for."""

    most: int = 1000
    taken: list[Part] = field(default_factory=list)
    stored: int = 0
    ended: int = 0
    asked_for_room: asyncio.Event = field(default_factory=asyncio.Event)
    has_room: asyncio.Event = field(default_factory=asyncio.Event)

    def is_full(self, events: int = 0, size: int = 0) -> bool:
        return len(self.taken) - self.stored + events > self.most

    def is_flooded(self, events: int = 0, size: int = 0) -> bool:
        return len(self.taken) - self.stored + events > 10 * self.most

    def flooded(self) -> None:
        self.ended += 1

    async def room(self) -> None:
        self.asked_for_room.set()
        await self.has_room.wait()

    def make_room(self) -> None:
        self.stored = len(self.taken)
        self.has_room.set()


async def in_a_thread(work: Callable[[], None]) -> None:
    async with asyncio.timeout(PATIENCE):
        await asyncio.to_thread(work)


class TestAThread:
    async def test_hands_on_all_in_order(self) -> None:
        bounds = Bounds()
        pending = Handover(bounds.taken.append, bounds)

        def work() -> None:
            for number in range(500):
                pending.put(part(number), 1)

        await in_a_thread(work)
        assert numbers(bounds.taken) == list(range(500))
        assert not bounds.asked_for_room.is_set()

    async def test_waits_while_too_much_is_pending(self) -> None:
        bounds = Bounds(most=2)
        pending = Handover(bounds.taken.append, bounds)

        def work() -> None:
            for number in range(4):
                pending.put(part(number), 1)

        working = asyncio.create_task(in_a_thread(work))
        await bounds.asked_for_room.wait()
        before = numbers(bounds.taken)
        bounds.make_room()
        await working
        assert 3 not in before, "one that waits is not given the next"
        assert numbers(bounds.taken) == [0, 1, 2, 3]

    async def test_is_refused_far_beyond_that_and_the_run_is_told(self) -> None:
        bounds = Bounds(most=0)
        pending = Handover(bounds.taken.append, bounds)

        def work() -> None:
            with pytest.raises(EventsFlooded):
                pending.put(part(1), 1)

        await in_a_thread(work)
        assert bounds.ended == 1

    async def test_is_let_go_as_the_worker_ends(self) -> None:
        released = threading.Event()

        async def worker() -> None:
            bounds = Bounds(most=0)
            bounds.is_flooded = lambda *_: False  # type: ignore[method-assign]
            pending = Handover(bounds.taken.append, bounds)

            def work() -> None:
                pending.put(part(1), 1)
                released.set()

            threading.Thread(target=work).start()
            await bounds.asked_for_room.wait()

        await asyncio.to_thread(asyncio.run, worker())
        assert await asyncio.to_thread(released.wait, PATIENCE)

    async def test_finds_nobody_once_the_worker_has_ended(self) -> None:
        async def worker() -> Handover:
            bounds = Bounds(most=0)
            return Handover(bounds.taken.append, bounds)

        pending = await asyncio.to_thread(asyncio.run, worker())
        await in_a_thread(lambda: pending.put(part(1), 1))


class TestALoopThatStandsStill:
    """A node holds it up until threads of its own are done."""

    async def test_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(handover, "LOOK_SECONDS", 0.05)
        bounds = Bounds(most=2)
        pending = Handover(bounds.taken.append, bounds)

        def work() -> None:
            for number in range(10):
                pending.put(part(number), 1)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        pending.put(part(10), 1)
        assert numbers(bounds.taken) == list(range(11))
        bounds.make_room()

    async def test_takes_what_was_emitted_meanwhile_in_its_order(self) -> None:
        bounds = Bounds()
        pending = Handover(bounds.taken.append, bounds)
        pending.put(part(0), 1)
        thread = threading.Thread(target=lambda: pending.put(part(1), 1))
        thread.start()
        thread.join(PATIENCE)
        pending.put(part(2), 1)
        assert numbers(bounds.taken) == [0, 1, 2]

    async def test_bounds_what_threads_may_emit_meanwhile(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(handover, "LOOK_SECONDS", 0.05)
        bounds = Bounds(most=2)
        pending = Handover(bounds.taken.append, bounds)
        refused: list[int] = []

        def work() -> None:
            for number in range(30):
                try:
                    pending.put(part(number), 1)
                except EventsFlooded:
                    refused.append(number)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(PATIENCE)
        assert refused == list(range(20, 30))
        bounds.make_room()
        await asyncio.sleep(0)
        assert bounds.ended
