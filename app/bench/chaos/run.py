"""``stoa bench chaos``: random faults under load, and the proof that nothing came of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from app.bench.chaos.conversations import answer_to
from app.bench.chaos.faults import Faults
from app.bench.chaos.promises import Violation
from app.bench.chaos.report import Report
from app.bench.chaos.rows import open_runs, runs_by_outcome
from app.bench.chaos.stage import lease_settings, open_stage
from app.bench.chaos.traffic import Conversation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.bench.chaos.client import Person
    from app.bench.chaos.member import Kind
    from app.bench.chaos.stage import Ground

LEASE_SECONDS = 2.0
REAP_SECONDS = 0.2
_PEOPLE = 6
_CONVERSATIONS = 12
_WORD_SECONDS = 0.01
_SETTLING_SECONDS = 90.0


@dataclass(frozen=True, slots=True)
class Plan:
    """How much goes wrong: so many faults over so many seconds, all of it chosen by the seed."""

    seconds: float
    faults: int
    seed: int
    sizes: Mapping[Kind, int]


async def bench_chaos(ground: Ground, plan: Plan) -> Report:
    """Let things go wrong for a while, let everything settle, and say what was broken."""
    random = Random(plan.seed)  # noqa: S311 - to be repeated, not to be secret
    settings = {
        **lease_settings(LEASE_SECONDS, REAP_SECONDS),
        # So many die here that a run may be left often; what is looked for is what it leaves.
        "STOA_MAX_ATTEMPTS": "20",
    }
    async with open_stage(ground, plan.sizes, settings, answer_to, _WORD_SECONDS) as stage:
        people = [stage.person(f"person-{number}", random) for number in range(_PEOPLE)]
        faults = Faults(
            stage.cluster,
            ground.postgres,
            stage.owner,
            LEASE_SECONDS,
            random,
            ground.logs / "faults.log",
        )
        broken_off = await _let_things_go_wrong(plan, faults, people, random)
        await stage.owner.dispose()  # its connections may be dead
        await stage.cluster.ready(stage.http)
        found = [*broken_off, *await _settled(stage.owner)]
        proof = stage.proof()
        found += await proof.settled(stage.promises)
        await stage.cluster.ready(stage.http)  # one that lost its lease meanwhile was replaced
        late = await stage.cluster.stop()
        found += [Violation("a process did not end in order", str(each)) for each in late]
        found += [Violation("a process is left", each) for each in stage.cluster.left_over()]
        found += await proof.ended()
        found += [Violation("a process is at fault", each) for each in stage.cluster.complaints()]
        runs = await runs_by_outcome(stage.owner)
    return Report(plan.seed, faults.injected, runs, Counter(found))


async def _let_things_go_wrong(
    plan: Plan, faults: Faults, people: Sequence[Person], random: Random
) -> list[Violation]:
    """Inject the faults under load; say which conversations got no answer or a wrong one."""
    stopping = asyncio.Event()
    talks = [
        asyncio.create_task(
            Conversation(
                people[number % len(people)],
                Random(random.random()),  # noqa: S311
                stopping,
            ).go_on()
        )
        for number in range(_CONVERSATIONS)
    ]
    clock = asyncio.get_running_loop().time
    started = clock()
    for number, kind in enumerate(faults.deck(plan.faults)):
        due = started + plan.seconds * (number + random.random()) / plan.faults
        await asyncio.sleep(due - clock())
        await faults.inject(kind)
    await faults.healed()
    stopping.set()
    ended = await asyncio.gather(*talks, return_exceptions=True)
    return [
        Violation("a conversation broke off", f"{type(each).__name__}: {each}")
        for each in ended
        if isinstance(each, BaseException)
    ]


async def _settled(owner: AsyncEngine) -> list[Violation]:
    """Wait until no run is open any more."""
    try:
        async with asyncio.timeout(_SETTLING_SECONDS):
            while await open_runs(owner):  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.1)
    except TimeoutError:
        return [Violation("runs did not end in time", f"{_SETTLING_SECONDS:g} s")]
    return []
