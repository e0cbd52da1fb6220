"""Inspecting a run by its id alone: for the maintenance role, and through no other door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from tenancy.database.crossing import DispatchDatabase
from tenancy.database.inspection import InspectionDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tests.support.tenancy import TestDatabase, claimed_run, make_thread, queue_run

INSPECT = "SELECT tenant.inspect_run($1)"


@pytest.fixture
async def inspection(database: TestDatabase) -> AsyncIterator[InspectionDatabase]:
    door = InspectionDatabase(database.settings("maintenance"))
    try:
        yield door
    finally:
        await door.close()


class TestTheMaintenanceRole:
    async def test_finds_anybodys_run(
        self,
        inspection: InspectionDatabase,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        alice: Principal,
        bob: Principal,
    ) -> None:
        for person in (alice, bob):
            run = await claimed_run(tenants, dispatch, person, await make_thread(tenants, person))
            found = await inspection.run(run.run_id)
            assert found is not None
            assert found["run"]["user_id"] == str(person.user_id)
            assert found["lease"]["host"] == "host.test"
            assert [each["fence"] for each in found["attempts"]] == [run.fence]

    async def test_finds_one_that_nobody_has_taken_up(
        self, inspection: InspectionDatabase, tenants: TenantDatabase, alice: Principal
    ) -> None:
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        found = await inspection.run(run.run_id)
        assert found is not None
        assert (found["lease"], found["attempts"], found["events"]) == (None, [], [])
        assert found["checkpoints"] == {"root": 0, "sub": 0, "namespaces": 0, "root_ids": []}

    async def test_finds_nothing_where_there_is_nothing(
        self, inspection: InspectionDatabase
    ) -> None:
        assert await inspection.run(uuid4()) is None


class TestOtherRoles:
    @pytest.mark.parametrize("role", ["service", "dispatch"])
    async def test_are_refused(self, role: str, database: TestDatabase) -> None:
        connection = await database.connect(role)  # type: ignore[arg-type]
        try:
            with pytest.raises(asyncpg.PostgresError):
                await connection.fetchval(INSPECT, uuid4())
        finally:
            await connection.close()

    async def test_are_refused_even_a_run_of_the_person_that_they_are_bound_to(
        self, database: TestDatabase, tenants: TenantDatabase, alice: Principal
    ) -> None:
        run = await queue_run(tenants, alice, await make_thread(tenants, alice))
        connection = await database.connect("service")
        try:
            await connection.execute("BEGIN")
            await connection.execute("SELECT tenant.begin_read($1)", alice.user_id)
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetchval(INSPECT, run.run_id)
        finally:
            await connection.close()
