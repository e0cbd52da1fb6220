"""``stoa bench cancel``: from the request that stops an answer to the model server's notice of it.

The model server looks for its client before each word, every few milliseconds: what is measured is
at most that much too long.
"""

from __future__ import annotations

import asyncio
import time
from random import Random
from typing import TYPE_CHECKING
from uuid import uuid4

from rich.table import Table

from app.bench.chaos.conversations import answer_to
from app.bench.chaos.stage import lease_settings, open_stage
from app.bench.load import percentile

if TYPE_CHECKING:
    from app.bench.chaos.client import Person
    from app.bench.chaos.member import Kind
    from app.bench.chaos.stage import Ground

GOAL_MS = 200
_WORD_SECONDS = 0.005
_TEXT = " ".join(["word"] * 2000)
_LOOK_EVERY = 0.002


async def bench_cancel(ground: Ground, *, rounds: int) -> Table:
    """Stop so many answers, one after the other."""
    sizes: dict[Kind, int] = {"web": 1, "worker": 1}
    cuts: asyncio.Queue[float] = asyncio.Queue()

    def cut() -> None:
        cuts.put_nowait(time.monotonic())

    answers: list[float] = []
    notices: list[float] = []
    settings = lease_settings(30, 5)
    async with open_stage(ground, sizes, settings, answer_to, _WORD_SECONDS, cut) as stage:
        person = stage.person("person", Random(0))  # noqa: S311
        for _ in range(rounds):
            asked, answered = await _stop_an_answer(person)
            answers.append(answered - asked)
            notices.append(await cuts.get() - asked)
    table = Table(title=f"{rounds} answers stopped, ms after the request was sent")
    for heading in ("", "p50", "p99", "most", "goal"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("accepted", *_summary(answers), "")
    table.add_row("the model server knows", *_summary(notices), f"≤ {GOAL_MS}")
    return table


async def _stop_an_answer(person: Person) -> tuple[float, float]:
    """When the cancel was asked for, and answered, of an answer that has begun."""
    run = await person.say(str(uuid4()), _TEXT)
    reading = asyncio.create_task(person.read(run))
    while not any(b"event: messages" in frame for frame in run.frames.values()):  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_EVERY)
    asked = time.monotonic()
    await person.stop(run, action="interrupt", wait=False)
    answered = time.monotonic()
    await reading
    return asked, answered


def _summary(seconds: list[float]) -> tuple[str, str, str]:
    chosen = (percentile(seconds, 50), percentile(seconds, 99), max(seconds))
    p50, p99, most = (f"{each * 1000:.0f}" for each in chosen)
    return p50, p99, most
