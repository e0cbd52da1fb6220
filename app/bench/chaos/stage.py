"""Where it happens: a deployment of real processes, a model, people, and what they were told."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import httpx

from app.bench.chaos.client import Person
from app.bench.chaos.cluster import Cluster
from app.bench.chaos.promises import Promises
from app.bench.chaos.proof import Proof
from app.bench.chaos.witness import install_witness, survive_crashes
from app.bench.issuer import AUDIENCE, ISSUER, BenchIssuer
from app.bench.model import MODEL, PacedModel
from tenancy.database.engine import DatabaseSettings, create_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.bench.chaos.faults import Postgres
    from app.bench.chaos.member import Kind, Spawn

_NO_LIMITS = httpx.Limits(max_connections=None)
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Ground:
    """What a stage stands on.

    Args:
        postgres: a server of its own, since it may be restarted.
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated database on it.
        owner_dsn: a superuser's DSN of that database.
        spawn: starts processes.
        logs: a folder for what they say.
    """

    postgres: Postgres
    dsns: Mapping[str, str]
    owner_dsn: str
    spawn: Spawn
    logs: Path


@dataclass
class Stage:
    """A running cluster, and everybody who talks to it."""

    cluster: Cluster
    owner: AsyncEngine
    http: httpx.AsyncClient
    promises: Promises = field(default_factory=Promises)
    _issuer: BenchIssuer = field(default_factory=BenchIssuer)
    _people: dict[str, Person] = field(default_factory=dict)
    _headers: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def person(self, name: str, random: Random) -> Person:
        """Somebody new, whose every promise is written down."""
        headers = self._headers[name] = self._issuer.headers(name)
        chooser = Random(random.random())  # noqa: S311
        self._people[name] = Person(
            name, headers, self.cluster.origins, self.http, self.promises, chooser
        )
        return self._people[name]

    def proof(self) -> Proof:
        """What looks at everything."""
        return Proof(self.owner, self.http, self.cluster.origins, self._people, self._headers)


@asynccontextmanager
async def open_stage(
    ground: Ground,
    sizes: Mapping[Kind, int],
    settings: Mapping[str, str],
    answer: Callable[[str], str],
    word_seconds: float,
    cut: Callable[[], None] = lambda: None,
) -> AsyncIterator[Stage]:
    """Start a cluster whose model gives these answers, at this pace; yield when it works.

    ``cut`` is called when the model finds that an answer is not wanted any more.
    """
    issuer = BenchIssuer()
    async with AsyncExitStack() as stack:
        owner = create_engine(DatabaseSettings(dsn=ground.owner_dsn))
        stack.push_async_callback(owner.dispose)
        await survive_crashes(owner)
        await install_witness(owner)
        model = await stack.enter_async_context(PacedModel(answer, word_seconds, cut=cut))
        jwks_url = stack.enter_context(issuer.published())
        environment = {**ground.dsns, **_settings(jwks_url, model.url), **settings}
        cluster = await stack.enter_async_context(
            Cluster(ground.spawn, environment, ground.logs, sizes)
        )
        http = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, timeout=_TIMEOUT, limits=_NO_LIMITS)
        )
        await cluster.start()
        await cluster.ready(http)
        yield Stage(cluster, owner, http, _issuer=issuer)


def lease_settings(lease_seconds: float, reap_seconds: float) -> dict[str, str]:
    """The settings that say how soon a worker is taken for dead."""
    return {
        "STOA_LEASE_SECONDS": str(lease_seconds),
        "STOA_HEARTBEAT_SECONDS": str(lease_seconds / 4),
        "STOA_REAP_SECONDS": str(reap_seconds),
    }


def _settings(jwks_url: str, model_url: str) -> dict[str, str]:
    return {
        "STOA_IDENTITY_ISSUER": ISSUER,
        "STOA_IDENTITY_AUDIENCE": AUDIENCE,
        "STOA_IDENTITY_JWKS_URL": jwks_url,
        "STOA_OLLAMA_URL": model_url,
        "STOA_MODEL": MODEL,
        "STOA_OLLAMA_CAPACITY": "100",
        "STOA_REQUESTS_PER_MINUTE": "100000",
        "STOA_MAX_STREAMS_PER_USER": "200",
        "STOA_LOG_FORMAT": "json",
    }
