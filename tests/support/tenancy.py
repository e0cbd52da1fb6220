"""Migrated databases and people to put into them.

One database is migrated per test run; every test gets a copy of it, or one that is as a copy
would be, and two people, Alice and Bob.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.runs.runs import Run, RunRequest, create_run
from app.runs.threads import create_thread
from tenancy.checkpoints.pool import CheckpointPool
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.engine import DatabaseSettings
from tenancy.database.tenant import TenantDatabase
from tenancy.identity.directory import UserDirectory
from tenancy.migrate import RoleDsns, migrate
from tenancy.principal import ClaimedRun, Identity, Principal, UserId
from tenancy.rls import Roles
from tests.support.databases import Databases
from tests.support.postgres import PostgresServer, Role, postgres_server

ASSISTANT = UUID("00000000-0000-4000-8000-00000000a9e7")
LEASE_SECONDS = 600.0
"""Longer than any test takes, on a machine however busy: a lease is over where a test says so."""
PATIENCE = 60.0
"""How long a test's own connections wait for what comes, in seconds."""
MODEL = "smollm2:latest"
"""The default model, by whose use claims are ordered."""


@dataclass(frozen=True)
class TestDatabase:
    """One database, and how each role reaches it."""

    __test__ = False

    server: PostgresServer
    name: str

    def dsn(self, role: Role) -> str:
        """The address for a role; the owner's is the superuser's."""
        return self.server.dsn(role, self.name)

    def settings(self, role: Role, pool_size: int = 4) -> DatabaseSettings:
        """How a process of ours would reach it."""
        return DatabaseSettings(
            dsn=self.dsn(role),
            pool_size=pool_size,
            statement_timeout=PATIENCE,
            idle_in_transaction_timeout=PATIENCE,
            connect_timeout=PATIENCE,
            acquire_timeout=PATIENCE,
        )

    def role_dsns(self) -> RoleDsns:
        """What ``migrate`` wants to know."""
        return RoleDsns(self.dsn("service"), self.dsn("dispatch"), self.dsn("maintenance"))

    def roles(self) -> Roles:
        """The names of the three login roles."""
        return self.role_dsns().roles()

    async def migrate(self) -> str:
        """Bring it to the present schema."""
        return await asyncio.to_thread(migrate, self.dsn("owner"), self.role_dsns())

    async def connect(self, role: Role) -> asyncpg.Connection:
        """A bare connection, without any door. The caller closes it."""
        return await asyncpg.connect(self.dsn(role), statement_cache_size=0)


@pytest.fixture(scope="session")
async def postgres() -> AsyncIterator[PostgresServer]:
    """The server that this test run uses."""
    async with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
async def template(postgres: PostgresServer) -> TestDatabase:
    """A migrated, empty database that nobody is connected to."""
    return TestDatabase(postgres, await postgres.template())


@pytest.fixture(scope="session")
async def databases(template: TestDatabase) -> AsyncIterator[Databases]:
    """Copies of the template, which are emptied and used again."""
    copies = Databases(template.server, template.name)
    yield copies
    await copies.drop()


@pytest.fixture
async def database(databases: Databases) -> AsyncIterator[TestDatabase]:
    """A migrated database of one's own."""
    async with databases.one() as name:
        yield TestDatabase(databases.server, name)


@pytest.fixture
async def empty_database(postgres: PostgresServer) -> AsyncIterator[TestDatabase]:
    """A database that was never migrated."""
    empty = TestDatabase(postgres, f"stoa_empty_{uuid4().hex[:12]}")
    await postgres.create_database(empty.name)
    try:
        yield empty
    finally:
        await postgres.drop_database(empty.name)


@pytest.fixture
async def superuser(database: TestDatabase) -> AsyncIterator[asyncpg.Connection]:
    """Sees every row, as a database administrator would."""
    connection = await database.connect("owner")
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture
async def tenants(database: TestDatabase) -> AsyncIterator[TenantDatabase]:
    """The tenant door."""
    door = TenantDatabase(database.settings("service"))
    try:
        yield door
    finally:
        await door.close()


@pytest.fixture
async def dispatch(database: TestDatabase) -> AsyncIterator[DispatchDatabase]:
    """The cross-user door."""
    door = DispatchDatabase(database.settings("dispatch"))
    try:
        yield door
    finally:
        await door.close()


@pytest.fixture
async def checkpoints(database: TestDatabase) -> AsyncIterator[CheckpointPool]:
    """The connections of savers and stores."""
    pool = CheckpointPool(database.settings("service"))
    await pool.open()
    try:
        yield pool
    finally:
        await pool.close()


@pytest.fixture
async def alice(tenants: TenantDatabase) -> Principal:
    """A person."""
    return await sign_in(tenants, "alice")


@pytest.fixture
async def bob(tenants: TenantDatabase) -> Principal:
    """Another person."""
    return await sign_in(tenants, "bob")


@pytest.fixture
async def whole_day() -> None:
    """Of which so much is left that a test ends on the day on which it begins."""
    now = datetime.now(UTC)
    tomorrow = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    if tomorrow - now < timedelta(minutes=2):
        await asyncio.sleep((tomorrow - now).total_seconds())


def identity(subject: str, issuer: str = "https://issuer.test") -> Identity:
    """What a verified assertion would say."""
    return Identity(issuer, subject, datetime.now(UTC) + timedelta(hours=1), name=subject.title())


async def sign_in(tenants: TenantDatabase, subject: str) -> Principal:
    """A person, as the service knows them after their first request."""
    return await UserDirectory(tenants).principal(identity(subject))


async def make_thread(
    tenants: TenantDatabase, person: Principal, thread_id: UUID | None = None
) -> UUID:
    """A conversation of a person's."""
    async with tenants.writing(person) as tx:
        return (await create_thread(tx, thread_id=thread_id)).thread_id


async def queue_run(
    tenants: TenantDatabase,
    person: Principal,
    thread_id: UUID,
    priority: int = 0,
    after_seconds: float = 0,
) -> Run:
    """A run that waits for a worker."""
    accepted = await create_run(
        tenants,
        person,
        thread_id=thread_id,
        assistant_id=ASSISTANT,
        graph_id="agent",
        request=RunRequest(input={"messages": ["hello"]}),
        priority=priority,
        after_seconds=after_seconds,
    )
    return accepted.run


async def make_worker(dispatch: DispatchDatabase, lease_seconds: float = LEASE_SECONDS) -> UUID:
    """A worker with a live lease."""
    worker_id = uuid4()
    await dispatch.register_worker(worker_id, "host.test", 1, lease_seconds)
    return worker_id


async def claim_runs(
    dispatch: DispatchDatabase, worker_id: UUID, slots: int, most_running: int = 1000
) -> list[ClaimedRun]:
    """Claim as a worker does for whose users this many runs at once are the limit."""
    return await dispatch.claim_runs(worker_id, slots, {"running": most_running}, MODEL)


async def claimed_run(
    tenants: TenantDatabase, dispatch: DispatchDatabase, person: Principal, thread_id: UUID
) -> ClaimedRun:
    """A run of a person's that a living worker holds."""
    await queue_run(tenants, person, thread_id)
    worker_id = await make_worker(dispatch)
    (run,) = await claim_runs(dispatch, worker_id, 1, 10)
    return run


async def expire_leases(superuser: asyncpg.Connection) -> None:
    """Let every worker's lease be over, as if time had passed."""
    await superuser.execute("UPDATE workers SET lease_until = clock_timestamp() - interval '1s'")


async def set_user_state(superuser: asyncpg.Connection, user_id: UserId, state: str) -> None:
    """What suspension and erasure do first."""
    await superuser.execute(
        "UPDATE users SET state = $2::user_state WHERE user_id = $1", user_id, state
    )
