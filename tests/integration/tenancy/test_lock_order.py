"""One order of locks: user, erasures, key, thread, claims, worker, runs by their ids, models,
servers, users of a model, calls, what belongs to a run, queues.

A deadlock is a ring of transactions, each waiting for the next. While no function, waiting at one
place of the order, holds anything further on, there is no ring. That is what is shown here, of
every function that there is: a stranger holds one row, the function runs into it, and everything
further on must be free.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from uuid import uuid4

import asyncpg
import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import ClaimedRun, Principal
from tests.integration.tenancy.locking import (
    AFTER_A_MODEL,
    MODELS,
    PARTS,
    READERS,
    WHAT_BELONGS_TO_A_MODEL,
    WHAT_BELONGS_TO_A_RUN,
    Call,
    Scene,
)
from tests.integration.tenancy.scenes import LEAVING, SITUATIONS, make_scene
from tests.support.postgres import Role
from tests.support.tenancy import (
    TestDatabase,
)

ROUNDS = 2
HELD = """
CREATE FUNCTION pg_temp.held(asked text[]) RETURNS integer[] LANGUAGE plpgsql AS $held$
DECLARE
  number integer;
  is_held boolean;
  numbers integer[] := '{}';
BEGIN
  FOR number IN 1 .. cardinality(asked) LOOP
    BEGIN
      EXECUTE 'SELECT bool_or(got::text = ''false'') FROM (' || asked[number] || ') AS one (got)'
        INTO is_held;
      numbers := CASE WHEN is_held THEN numbers || number ELSE numbers END;
      RAISE SQLSTATE 'ZZ000';
    EXCEPTION
      WHEN SQLSTATE 'ZZ000' THEN NULL;  -- which lets go of it again
      WHEN lock_not_available THEN numbers := numbers || number;
    END;
  END LOOP;
  RETURN numbers;
END $held$
"""
"""Of some places, which ones somebody holds: asked in one go, for there are many."""


@pytest.fixture
async def scene(
    request: pytest.FixtureRequest,
    tenants: TenantDatabase,
    dispatch: DispatchDatabase,
    superuser: asyncpg.Connection,
    alice: Principal,
) -> Scene:
    """As the test's parameter says."""
    return await make_scene(request.param, tenants, dispatch, superuser, alice)


every_situation = pytest.mark.parametrize("scene", [*SITUATIONS, LEAVING], indirect=True)


@asynccontextmanager
async def begun(connection: asyncpg.Connection) -> AsyncIterator[asyncpg.Connection]:
    """A transaction that leaves everything as it was."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()


async def refusal(connection: asyncpg.Connection, call: Call) -> str:
    """Make a call and take it back; the SQLSTATE of what was refused, or an empty string."""
    async with begun(connection):
        try:
            if call.bound:
                await connection.execute("SELECT tenant.begin_write($1)", call.bound)
            await connection.fetch(call.statement, *call.arguments)
        except asyncpg.PostgresError as error:
            return str(error.sqlstate)
    return ""


class Connections:
    """A connection for each part that somebody plays."""

    def __init__(self, database: TestDatabase) -> None:
        self._database = database
        self._open: dict[tuple[Role, int], asyncpg.Connection] = {}

    async def of(self, role: Role, number: int = 0) -> asyncpg.Connection:
        if (role, number) not in self._open:
            self._open[role, number] = await self._database.connect(role)
        return self._open[role, number]

    async def observer(self) -> asyncpg.Connection:
        """One that can tell which places are held."""
        connection = await self.of("owner", 1)
        await connection.execute(HELD)
        return connection

    async def close(self) -> None:
        for connection in self._open.values():
            await connection.close()


@pytest.fixture
async def connections(
    database: TestDatabase, superuser: asyncpg.Connection
) -> AsyncIterator[Connections]:
    # A deadlock is looked for at once, not after a second.
    await superuser.execute(f"ALTER DATABASE \"{database.name}\" SET deadlock_timeout = '20ms'")
    opened = Connections(database)
    try:
        yield opened
    finally:
        await opened.close()


async def waits(observer: asyncpg.Connection, pid: int, calling: asyncio.Task[str]) -> bool:
    """Whether a call has come to wait for somebody; False once it is over."""
    while not calling.done():
        if await observer.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid):
            return True
        await asyncio.wait([calling], timeout=0.002)
    return False


async def held(observer: asyncpg.Connection, places: Mapping[str, str]) -> list[str]:
    """Which places somebody holds, in however weak a way."""
    asked = [
        hold.replace("FOR UPDATE", "FOR UPDATE NOWAIT").replace("pg_adv", "pg_try_adv")
        for hold in places.values()
    ]
    numbers = await observer.fetchval("SELECT pg_temp.held($1::text[])", asked)
    return [list(places)[number - 1] for number in numbers]


def _pairs(calls: Mapping[str, Call]) -> Iterator[tuple[str, str]]:
    return itertools.combinations_with_replacement(sorted(calls), 2)


def _dealt(pairs: Iterator[tuple[str, str]], situation: int) -> Iterator[tuple[str, str]]:
    """A situation's part of the pairs: each pair is in one."""
    return itertools.islice(pairs, situation, None, len(SITUATIONS))


class TestAFunctionThatHasToWait:
    @every_situation
    async def test_holds_nothing_further_on(
        self, request: pytest.FixtureRequest, scene: Scene, connections: Connections
    ) -> None:
        stranger, observer = await connections.of("owner"), await connections.observer()
        places = scene.places()
        waited: dict[str, set[str]] = {place: set() for place in places}
        is_leaving = request.node.callspec.params["scene"] == LEAVING
        for name, call in (scene.of_leaving() if is_leaving else scene.calls()).items():
            caller = await connections.of(call.role)
            for n, (place, hold) in enumerate(places.items()):
                wrong: list[str] = []
                async with begun(stranger):
                    await stranger.fetch(hold)
                    calling = asyncio.create_task(refusal(caller, call))
                    if await waits(observer, caller.get_server_pid(), calling):
                        waited[place].add(name)
                        # Nobody else changes what belongs to a run of whoever leaves.
                        if place in WHAT_BELONGS_TO_A_RUN and not is_leaving:
                            wrong = [] if await held(observer, scene.runs_places()) else ["no run"]
                        elif place in WHAT_BELONGS_TO_A_MODEL:
                            if not await held(observer, MODELS):
                                wrong = await held(observer, AFTER_A_MODEL)
                        else:
                            wrong = await held(observer, dict(list(places.items())[n + 1 :]))
                await calling
                assert not wrong, (name, place, wrong)
        # The stranger was in the way of somebody at each place, or this would show nothing.
        met = {place for place, names in waited.items() if names}
        if is_leaving:
            assert met >= {"user", "erasures", "claims", "run 1", "run 2", "approvals"}
        else:
            assert met >= {"user", "key", "thread", "claims", "worker", "run 1", "run 2"}
            assert met >= {"models", "users of a model", "calls", "servers"}


class TestTakingAServerAway:
    @pytest.mark.parametrize("scene", ["running"], indirect=True)
    async def test_waits_for_whoever_shares_it_before_it_holds_anything_else(
        self, scene: Scene, connections: Connections
    ) -> None:
        """Else the one that shares it may wait for what is held, and both for each other."""
        stranger, observer = await connections.of("owner"), await connections.observer()
        taking = scene.calls()["drop_credential remove"]
        caller = await connections.of(taking.role)
        places = scene.places()
        async with begun(stranger):
            await stranger.fetch(places["connections"].replace("UPDATE", "KEY SHARE"))
            calling = asyncio.create_task(refusal(caller, taking))
            assert await waits(observer, caller.get_server_pid(), calling)
            assert await held(observer, {"": places["authorizations"]}) == []
        assert await calling == ""


class TestAnyTwoAtOnce:
    @every_situation
    async def test_never_wait_for_each_other_in_a_ring(
        self,
        request: pytest.FixtureRequest,
        nightly: bool,
        scene: Scene,
        connections: Connections,
    ) -> None:
        """Each pair in one situation; at night in all of them, and more than once."""
        calls = scene.calls()
        situation = request.node.callspec.params["scene"]
        pairs: Iterator[tuple[str, str]]
        if situation == LEAVING:
            # Whatever is bound to the person is refused.
            leaving = scene.of_leaving()
            others = {name: call for name, call in calls.items() if call.role == "dispatch"}
            pairs = (pair for pair in _pairs(others | leaving) if set(pair) & leaving.keys())
        else:
            pairs = _pairs(calls) if nightly else _dealt(_pairs(calls), SITUATIONS.index(situation))
        for one, other in pairs:
            first = await connections.of(calls[one].role, 0)
            second = await connections.of(calls[other].role, 1)
            for _ in range(ROUNDS if nightly else 1):
                refused = await asyncio.gather(
                    refusal(first, calls[one]), refusal(second, calls[other])
                )
                assert "40P01" not in refused, (one, other)


class TestTheListOfFunctions:
    async def test_has_every_function_that_there_is(self, superuser: asyncpg.Connection) -> None:
        found = await superuser.fetch(
            """
            SELECT proname, prosrc FROM pg_proc
            WHERE pronamespace::regnamespace::text IN ('tenant', 'dispatch')
            """
        )
        scene = Scene(uuid4(), uuid4(), ClaimedRun(uuid4(), uuid4(), 1), uuid4(), [])  # type: ignore[arg-type]
        tried = {name.split()[0] for name in scene.calls()}
        assert {row["proname"] for row in found} == tried | PARTS | READERS
        for row in found:
            if row["proname"] in READERS:
                written = {"INSERT", "UPDATE", "DELETE", "SHARE"} & set(row["prosrc"].split())
                assert not written, row["proname"]
