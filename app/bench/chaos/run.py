"""``stoa bench chaos``: random faults under load, and the proof that nothing came of them."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import httpx

from app.bench.chaos.client import Person
from app.bench.chaos.cluster import Cluster
from app.bench.chaos.conversations import answer_to
from app.bench.chaos.faults import Faults
from app.bench.chaos.promises import Promises, Violation
from app.bench.chaos.proof import Proof
from app.bench.chaos.report import Report
from app.bench.chaos.rows import open_runs, runs_by_state
from app.bench.chaos.traffic import Conversation
from app.bench.chaos.witness import install_witness, survive_crashes
from app.bench.issuer import AUDIENCE, ISSUER, BenchIssuer
from app.bench.model import MODEL, PacedModel
from tenancy.database.engine import DatabaseSettings, create_engine

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.bench.chaos.faults import Postgres
    from app.bench.chaos.member import Kind, Spawn

LEASE_SECONDS = 2.0
_PEOPLE = 6
_CONVERSATIONS = 12
_WORD_SECONDS = 0.01
_SETTLING_SECONDS = 90.0
_NO_LIMITS = httpx.Limits(max_connections=None)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much goes wrong: so many faults over so many seconds, all of it chosen by the seed."""

    seconds: float
    faults: int
    seed: int
    sizes: Mapping[Kind, int]


@dataclass
class _People:
    """Everybody who talks, and what they were told."""

    http: httpx.AsyncClient
    promises: Promises = field(default_factory=Promises)
    headers: dict[str, Mapping[str, str]] = field(default_factory=dict)
    by_name: dict[str, Person] = field(default_factory=dict)

    def gather(self, issuer: BenchIssuer, cluster: Cluster, random: Random) -> None:
        for number in range(_PEOPLE):
            name = f"person-{number}"
            self.headers[name] = issuer.headers(name)
            self.by_name[name] = Person(
                name,
                self.headers[name],
                cluster.origins,
                self.http,
                self.promises,
                Random(random.random()),  # noqa: S311
            )


async def bench_chaos(
    plan: Plan,
    postgres: Postgres,
    dsns: Mapping[str, str],
    owner_dsn: str,
    spawn: Spawn,
    logs: Path,
) -> Report:
    """Let things go wrong for a while, let everything settle, and say what was broken.

    Args:
        plan: how much goes wrong.
        postgres: a server of its own, since it is restarted.
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated database on it.
        owner_dsn: a superuser's DSN of that database.
        spawn: starts processes.
        logs: an empty folder for what they say.
    """
    random = Random(plan.seed)  # noqa: S311 - to be repeated, not to be secret
    issuer = BenchIssuer()
    async with AsyncExitStack() as stack:
        owner = create_engine(DatabaseSettings(dsn=owner_dsn))
        stack.push_async_callback(owner.dispose)
        await survive_crashes(owner)
        await install_witness(owner)
        model = await stack.enter_async_context(PacedModel(answer_to, _WORD_SECONDS))
        jwks_url = stack.enter_context(issuer.published())
        settings = {**dsns, **_settings(jwks_url, model.url)}
        cluster = await stack.enter_async_context(Cluster(spawn, settings, logs, plan.sizes))
        http = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, timeout=10, limits=_NO_LIMITS)
        )
        await cluster.start()
        await cluster.ready(http)
        people = _People(http)
        people.gather(issuer, cluster, random)
        faults = Faults(cluster, postgres, owner, LEASE_SECONDS, random, logs / "faults.log")
        unanswered = await _let_things_go_wrong(plan, faults, people, random)
        await owner.dispose()  # its connections may be dead
        await cluster.ready(http)
        found = [*unanswered, *await _settled(owner)]
        proof = Proof(owner, http, cluster.origins, people.by_name, people.headers)
        found += await proof.settled(people.promises)
        late = await cluster.stop()
        found += [Violation("a process did not end in order", str(each)) for each in late]
        found += [Violation("a process is left", each) for each in cluster.left_over()]
        found += await proof.ended()
        return Report(plan.seed, faults.injected, await runs_by_state(owner), Counter(found))


async def _let_things_go_wrong(
    plan: Plan, faults: Faults, people: _People, random: Random
) -> list[Violation]:
    """Inject the faults under load; say which conversations got no answer or a wrong one."""
    stopping = asyncio.Event()
    persons = list(people.by_name.values())
    talks = [
        asyncio.create_task(
            Conversation(
                persons[number % len(persons)],
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


def _settings(jwks_url: str, model_url: str) -> dict[str, str]:
    return {
        "STOA_IDENTITY_ISSUER": ISSUER,
        "STOA_IDENTITY_AUDIENCE": AUDIENCE,
        "STOA_IDENTITY_JWKS_URL": jwks_url,
        "STOA_OLLAMA_URL": model_url,
        "STOA_MODEL": MODEL,
        "STOA_LEASE_SECONDS": str(LEASE_SECONDS),
        "STOA_HEARTBEAT_SECONDS": str(LEASE_SECONDS / 4),
        "STOA_REAP_SECONDS": "0.2",
        # So many die here that a run may be left often; what is looked for is what it leaves.
        "STOA_MAX_ATTEMPTS": "20",
        "STOA_MAX_STREAMS_PER_USER": "200",
        "STOA_LOG_FORMAT": "json",
    }
