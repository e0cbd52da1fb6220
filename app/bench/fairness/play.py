"""Replays traces: people ask, wait, read and ask again, all calls through the transport."""

from __future__ import annotations

import asyncio
import json
from itertools import cycle
from typing import TYPE_CHECKING

from app.bench.fairness.ledger import Ledger
from app.bench.fairness.people import MODEL, SEATS
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from app.bench.fairness.people import Person, Size
    from app.bench.fairness.stage import Stage
    from app.models.scope import RunScope

_SETTLE_IN = 0.1
"""Of the time that is measured: how long before, so that everybody is at work."""
_END_SECONDS = 60.0


async def play(stage: Stage, people: Sequence[Person], seconds: float, seed: int) -> Ledger:
    """Let people use the model for a while, and write down what happens."""
    ledger = Ledger()
    clock = asyncio.get_running_loop().time
    async with stage.opened(people, ledger) as scopes:
        there = [_come(stage, each, own, ledger, seed) for each, own in _here(people, scopes)]
        users = [task for tasks in there for task in tasks]
        await stage.queued(sum(each.at_once for each in people if not _is_late(each)) - SEATS)
        await asyncio.sleep(_SETTLE_IN * seconds)
        ledger.began = clock()
        for person, own in zip(people, scopes, strict=True):
            if _is_late(person):
                await asyncio.sleep(ledger.began + person.comes_after * seconds - clock())
                users += _come(stage, person, own, ledger, seed)
        await asyncio.sleep(ledger.began + seconds - clock())
        ledger.ended = clock()
        await stage.dismiss()
        await _end(users, scopes)
    return ledger


def _is_late(person: Person) -> bool:
    return person.comes_after > 0


def _here(
    people: Sequence[Person], scopes: Sequence[list[RunScope]]
) -> Iterator[tuple[Person, list[RunScope]]]:
    both = zip(people, scopes, strict=True)
    return ((person, own) for person, own in both if not _is_late(person))


def _come(
    stage: Stage, person: Person, scopes: list[RunScope], ledger: Ledger, seed: int
) -> list[asyncio.Task[None]]:
    sizes, pauses = person.sizes(seed), person.pauses(seed)
    return [
        asyncio.create_task(_use(stage, scope, sizes, pauses, ledger), name=person.name)
        for _, scope in zip(range(person.at_once), cycle(scopes), strict=False)
    ]


async def _use(
    stage: Stage,
    scope: RunScope,
    sizes: Iterator[Size],
    pauses: Iterator[float],
    ledger: Ledger,
) -> None:
    for size, pause in zip(sizes, pauses, strict=False):
        await stage.ask(scope.run, size)
        try:
            answer = await scope.access.send(scope, "/api/chat", _question(size))
            while await answer.read() is not None:
                pass
        except StoaError:
            if not ledger.ended:
                ledger.failures += 1
                raise
            return
        if pause:
            await asyncio.sleep(pause)


def _question(size: Size) -> bytes:
    said = [{"role": "user", "content": f"{size.prompt} {size.output}"}]
    return json.dumps({"model": MODEL, "messages": said, "stream": True}).encode()


async def _end(users: list[asyncio.Task[None]], scopes: Sequence[list[RunScope]]) -> None:
    """Have everybody leave; whoever failed before that says so now."""
    failed = [task for task in users if task.done()]
    for task in users:
        task.cancel()
    for own in scopes:
        for scope in own:
            scope.close()
    await asyncio.gather(*users, return_exceptions=True)
    for own in scopes:
        for scope in own:
            await scope.ended(_END_SECONDS)
    for task in failed:
        task.result()
