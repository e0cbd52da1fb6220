"""People who use the service while it fails: every way in which a run can be asked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from app.bench.chaos.client import Refused
from app.bench.chaos.conversations import INCOMPLETE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from app.bench.chaos.client import Person
    from app.bench.chaos.promises import Action, Promise, Strategy

_LONG = 40
_TURNS = 12
"""After so many a conversation is left and another one begun."""


@dataclass
class Conversation:
    """Somebody who talks on one thread, until told to stop."""

    person: Person
    random: Random
    stopping: asyncio.Event
    _thread_id: str = ""
    _numbers: count[int] = field(default_factory=count)

    async def go_on(self) -> None:
        """Do one thing after another."""
        habits: Sequence[Callable[[], Awaitable[object]]] = (
            self._say_and_read,
            self._say_and_read,
            self._say_twice,
            self._write_on,
            self._change_their_mind,
            self._stop,
            self._stop,
            self._stop_and_go_on,
            self._ask_again,
            self._insist,
        )
        while not self.stopping.is_set():
            self._thread_id = str(UUID(int=self.random.getrandbits(128), version=4))
            for _ in range(_TURNS):
                await self.random.choice(habits)()
                await asyncio.sleep(self.random.uniform(0, 0.1))
                if self.stopping.is_set():
                    return

    async def _say_and_read(self) -> None:
        """The plain case, at any length."""
        await self.person.say_and_read(self._thread_id, self._text(self.random.randint(1, _LONG)))

    async def _say_twice(self) -> None:
        """Send the same request again though it was answered: it is one run."""
        text, key = self._text(3), uuid4().hex
        first = await self.person.say(self._thread_id, text, key=key)
        await self.person.say(self._thread_id, text, key=key)
        await self.person.read(first)

    async def _write_on(self) -> None:
        """Send the next message without waiting for the answer: it waits its turn."""
        runs = [await self.person.say(self._thread_id, self._text(5)) for _ in range(3)]
        await self._read(runs)

    async def _change_their_mind(self) -> None:
        """Send another message in place of the one that is being answered."""
        strategy: Strategy = self.random.choice(("interrupt", "rollback"))
        first = await self.person.say(self._thread_id, self._text(_LONG))
        await self._wait_a_moment()
        second = await self.person.say(self._thread_id, self._text(5), strategy=strategy)
        await self._read([first, second])

    async def _insist(self) -> None:
        """Send a message that is only wanted if nothing else is going on."""
        first = await self.person.say(self._thread_id, self._text(_LONG))
        runs = [first]
        try:
            runs.append(await self.person.say(self._thread_id, self._text(2), strategy="reject"))
        except Refused as refused:
            if refused.code != "thread_busy":
                raise
        await self._read(runs)

    async def _stop(self) -> Promise:
        """Stop an answer, perhaps more than once, and perhaps after its end."""
        run = await self.person.say(self._thread_id, self._text(_LONG))
        await self._wait_a_moment()
        action: Action = self.random.choice(("interrupt", "interrupt", "rollback"))
        for _ in range(self.random.randint(1, 2)):
            await self.person.stop(run, action=action, wait=self.random.random() < 1 / 3)
        await self.person.read(run)
        return run

    async def _stop_and_go_on(self) -> None:
        """Stop an answer and have it gone on with, if there is anything left."""
        await self._stop()
        try:
            await self.person.read(await self.person.say(self._thread_id, None))
        except Refused as refused:
            if refused.code != "nothing_to_continue" or await self._is_incomplete():
                raise

    async def _ask_again(self) -> None:
        """Read an answer that was read before."""
        run = await self.person.say(self._thread_id, self._text(4))
        await asyncio.gather(self.person.read(run), self.person.join(run))

    async def _is_incomplete(self) -> bool:
        """Whether the thread ends with an answer that was cut off."""
        messages = await self.person.messages(self._thread_id)
        return bool(messages) and INCOMPLETE in messages[-1].get("response_metadata", {})

    async def _read(self, runs: Sequence[Promise]) -> None:
        await asyncio.gather(*(self.person.read(run) for run in runs))

    async def _wait_a_moment(self) -> None:
        await asyncio.sleep(self.random.choice((0, self.random.uniform(0, 0.6))))

    def _text(self, words: int) -> str:
        """A message like no other on its thread."""
        return " ".join([f"number {next(self._numbers)}", *["word"] * words])
