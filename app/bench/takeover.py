"""``stoa bench takeover``: how long a run waits for another worker when its own one is gone.

Two workers; the one that answers is killed, or told to end. After a kill it is measured from the
kill, after a drain from the release of the run (the drain itself lasts as long as its step may),
each to the next attempt's first event at the client.
"""

from __future__ import annotations

import asyncio
import signal
import time
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.table import Table

from app.bench.chaos.conversations import answer_to
from app.bench.chaos.rows import holder_of, released_at
from app.bench.chaos.stage import Stage, lease_settings, open_stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.bench.chaos.client import Person
    from app.bench.chaos.member import Kind
    from app.bench.chaos.promises import Promise
    from app.bench.chaos.stage import Ground

DRAIN_SECONDS = 0.5
"""Less than an answer takes here, so that each drain cuts one off."""
_WORD_SECONDS = 0.1
_TEXT = " ".join(["word"] * 50)
_LOOK_EVERY = 0.005


async def bench_takeover(
    ground: Ground, *, rounds: int, lease_seconds: float, reap_seconds: float
) -> Table:
    """Measure so many takeovers of each kind."""
    settings = {
        **lease_settings(lease_seconds, reap_seconds),
        "STOA_DRAIN_SECONDS": str(DRAIN_SECONDS),
    }
    sizes: dict[Kind, int] = {"web": 1, "worker": 2}
    async with open_stage(ground, sizes, settings, answer_to, _WORD_SECONDS) as stage:
        person = stage.person("person", Random(0))  # noqa: S311
        drained = [await _drained(stage, person) for _ in range(rounds)]
        killed = [await _killed(stage, person) for _ in range(rounds)]
    table = Table(title=f"Takeover, lease {lease_seconds:g} s, reaper {reap_seconds:g} s")
    for heading in ("", "least", "median", "most", "goal"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("after a drain", *_summary(drained), "≤ 1 s")
    table.add_row("after kill -9", *_summary(killed), f"≤ {lease_seconds + reap_seconds + 1:g} s")
    return table


async def _drained(stage: Stage, person: Person) -> float:
    run, reading = await _answering(stage, person)
    await _signal_holder(stage, run, signal.SIGTERM)
    again = await _begun_again(run)
    await reading
    return again - await released_at(stage.owner, run.run_id)


async def _killed(stage: Stage, person: Person) -> float:
    run, reading = await _answering(stage, person)
    killed = time.time()
    await _signal_holder(stage, run, signal.SIGKILL)
    again = await _begun_again(run)
    await reading
    return again - killed


async def _answering(stage: Stage, person: Person) -> tuple[Promise, asyncio.Task[None]]:
    """A run in the middle of its answer, with both workers there."""
    await stage.cluster.ready(stage.http)
    run = await person.say(str(uuid4()), _TEXT)
    reading = asyncio.create_task(person.read(run))
    await _read_events(run, b"event: messages", 1)
    return run, reading


async def _signal_holder(stage: Stage, run: Promise, number: signal.Signals) -> None:
    pid = await holder_of(stage.owner, run.run_id)
    for worker in stage.cluster.members("worker"):
        if worker.process.pid == pid:
            worker.send(number)


async def _begun_again(run: Promise) -> float:
    """When the second attempt's first event came."""
    await _read_events(run, b"event: metadata", 2)
    return time.time()


async def _read_events(run: Promise, line: bytes, times: int) -> None:
    """Return once so many events of a kind have come."""
    while sum(line in frame for frame in run.frames.values()) < times:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_EVERY)


def _summary(seconds: Sequence[float]) -> tuple[str, str, str]:
    ordered = sorted(seconds)
    chosen = (ordered[0], ordered[len(ordered) // 2], ordered[-1])
    least, median, most = (f"{each:.2f} s" for each in chosen)
    return least, median, most
