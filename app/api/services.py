"""Everything the HTTP API is served with, built once per process."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.agent.graphs import GraphCatalogue
from app.api.readiness import Readiness
from app.api.streams import OpenStreams
from app.runs.history import ThreadHistory
from app.runs.tail import RunTail
from app.settings import Settings
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.engine import DatabaseSettings
from tenancy.database.signals import Announcer
from tenancy.database.tenant import TenantDatabase
from tenancy.identity import IdentityVerifier, JwtIdentitySettings
from tenancy.identity.directory import UserDirectory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True, slots=True)
class Services:
    """What handlers work with. Shared by all requests of the process."""

    settings: Settings
    database: TenantDatabase
    verifier: IdentityVerifier
    directory: UserDirectory
    graphs: GraphCatalogue
    history: ThreadHistory
    tail: RunTail
    announcer: Announcer
    streams: OpenStreams
    readiness: Readiness


@asynccontextmanager
async def open_services(settings: Settings) -> AsyncIterator[Services]:
    """Build and start the services; end them, last first, when the block ends.

    Raises:
        SettingsError: one that is needed is missing.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    database_settings = service_database(settings)
    async with AsyncExitStack() as stack:
        database = TenantDatabase(database_settings)
        stack.push_async_callback(database.close)
        pool = CheckpointPool(database_settings)
        await pool.open()
        stack.push_async_callback(pool.close)
        verifier = IdentityVerifier(identity_settings(settings))
        stack.push_async_callback(verifier.aclose)
        graphs = GraphCatalogue(settings)
        stack.push_async_callback(graphs.close)
        listen_dsn = (
            settings.listen_database_url.get_secret_value()
            if settings.listen_database_url
            else database_settings.dsn
        )
        tail = RunTail(database, listen_dsn)
        await tail.start()
        stack.push_async_callback(tail.stop)
        announcer = Announcer(listen_dsn)
        await announcer.start()
        stack.push_async_callback(announcer.stop)
        yield Services(
            settings=settings,
            database=database,
            verifier=verifier,
            directory=UserDirectory(database),
            graphs=graphs,
            history=ThreadHistory(database, pool, graphs),
            tail=tail,
            announcer=announcer,
            streams=OpenStreams(settings.max_streams_per_user),
            readiness=Readiness(settings, database_settings),
        )


def service_database(settings: Settings) -> DatabaseSettings:
    """How this process reaches Postgres under the service role."""
    return DatabaseSettings(
        dsn=settings.required("database_url"),
        pool_size=settings.database_pool_size,
        prepared_statements=settings.database_prepared_statements,
        application_name="stoa web",
    )


def identity_settings(settings: Settings) -> JwtIdentitySettings:
    """What assertions are checked against."""
    return JwtIdentitySettings(
        header=settings.identity_header,
        issuer=settings.required("identity_issuer"),
        audience=settings.required("identity_audience"),
        jwks_url=settings.required("identity_jwks_url"),
        admin_claim=settings.identity_admin_claim,
        admin_value=settings.identity_admin_value,
    )
