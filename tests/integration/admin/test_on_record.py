"""Whatever an operator does or looks at is on record, and so is who only wants to be one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from tenancy.acts import Act
from tenancy.errors import UserUnavailable
from tenancy.oversight.acts import ActDatabase
from tenancy.principal import Principal, UserId
from tenancy.scheduler.oversight import OversightDatabase
from tests.integration.admin.conftest import ADMINS, answer, id_of
from tests.integration.admin.recorded import Record, record_of, routes
from tests.support.service import RunningService
from tests.support.tenancy import TestDatabase, set_user_state

RESTART = "/admin/restart"
ERASE = ("DELETE", "/admin/users/{user_id}")
NO_PLAN = {"plan": None, "limits": {"running": 8}}


@pytest.fixture
async def record(service: RunningService) -> AsyncIterator[Record]:
    async with record_of(service) as record:
        yield record


@pytest.fixture
def newcomer(service: RunningService) -> httpx.AsyncClient:
    """An operator of whom nothing is on record."""
    return service.client(f"operator {uuid4().hex}", groups=ADMINS)


class TestEveryRoute:
    async def test_is_on_record_with_who_called_it_and_about_whom(
        self, service: RunningService, newcomer: httpx.AsyncClient, record: Record
    ) -> None:
        me = await id_of(newcomer)
        tried = sorted(await routes(newcomer), key=lambda each: each[:2] != ERASE)
        names = {"plan": f"p{uuid4().hex[:8]}", "pool": "default", "erasure_id": str(uuid4())}
        for method, path, body in tried:
            whom = await id_of(service.client(f"person {uuid4().hex}"))
            if path.endswith("/resume"):
                await set_user_state(record.superuser, UserId(UUID(whom)), "suspended")
            before = await record.acts(me)
            called = path.format(user_id=whom, **names)
            said = await newcomer.request(
                method, called, json=NO_PLAN if body and path.endswith("/limits") else body
            )
            if path == RESTART:  # that of one that offers it is: test_restart
                assert said.status_code == 404
                continue
            assert said.is_success, (method, path, said.text)
            if (method, path) == ERASE:
                names["erasure_id"] = said.json()["erasure_id"]
            (act,) = (await record.acts(me))[len(before) :]
            assert act["route"] == f"{method} {path}"
            assert (act["action"] == "looked") == (method == "GET"), (method, path, act)
            assert (act["actor"], act["account"]) == ("operator", None)
            if "{user_id}" in path and (method, path) != ERASE:
                assert act["user_id"] == UUID(whom)
        # For whoever comes next, as the settings say.
        await answer(newcomer, "PATCH", "/admin/pools/default", json={"capacity": None})

    async def test_that_somebody_else_calls_is_on_their_own_record(
        self, service: RunningService, record: Record
    ) -> None:
        somebody = service.client(f"curious {uuid4().hex}")
        me = await id_of(somebody)
        wanted = [(method, path) for method, path, _ in await routes(somebody)]
        names = {"user_id": uuid4(), "plan": "default", "pool": "default", "erasure_id": uuid4()}
        for _ in range(2):  # the second time within the hour
            for method, path in wanted:
                assert (await somebody.request(method, path.format(**names))).status_code == 403
        refused = [f"{method} {path}" for method, path in wanted]
        acts = await record.acts(me)
        assert [act["route"] for act in acts] == refused
        assert {(act["actor"], act["action"], act["why"]) for act in acts} == {
            ("person", "refused", "not_an_operator")
        }
        told = (await somebody.get("/me/audit", params={"limit": 1000})).json()
        assert [each["route"] for each in told] == refused[::-1]
        assert {each["action"] for each in told} == {"refused"}


class TestALook:
    async def test_is_on_record_once_an_hour_for_each_whom_it_is_about(
        self, service: RunningService, newcomer: httpx.AsyncClient, record: Record
    ) -> None:
        me = await id_of(newcomer)
        first, second = [await id_of(service.client(f"p {uuid4().hex}")) for _ in range(2)]
        for whom in (first, second, first):
            await answer(newcomer, "GET", f"/admin/users/{whom}")
        await answer(newcomer, "GET", "/admin/usage", params={"user_id": first})
        assert [(act["route"], str(act["user_id"])) for act in await record.acts(me)] == [
            ("GET /admin/users/{user_id}", first),
            ("GET /admin/users/{user_id}", second),
            ("GET /admin/usage", first),
        ]
        await record.age(3601)
        await answer(newcomer, "GET", f"/admin/users/{first}")
        assert len(await record.acts(me)) == 4

    async def test_at_nobody_is_on_record_too(
        self, newcomer: httpx.AsyncClient, record: Record
    ) -> None:
        me = await id_of(newcomer)
        assert (await newcomer.get(f"/admin/users/{uuid4()}")).status_code == 404
        assert (await newcomer.get("/admin/users/no-id")).status_code == 422
        assert [act["user_id"] for act in await record.acts(me)] == [None]

    async def test_is_told_to_the_person_but_not_whose_it_was(
        self, service: RunningService, newcomer: httpx.AsyncClient
    ) -> None:
        person = service.client(f"p {uuid4().hex}")
        await answer(newcomer, "GET", f"/admin/users/{await id_of(person)}")
        said = await person.get("/me/audit")
        (told,) = said.json()
        assert (told["actor"], told["action"]) == ("operator", "looked")
        assert told["route"] == "GET /admin/users/{user_id}"
        assert await id_of(newcomer) not in said.text


class TestAChange:
    async def test_that_is_refused_leaves_nothing_on_record(
        self, newcomer: httpx.AsyncClient, record: Record
    ) -> None:
        body = {"plan": "nobodys", "limits": {}}
        path = f"/admin/users/{await id_of(newcomer)}/limits"
        assert (await newcomer.put(path, json=body)).status_code == 422
        assert (await newcomer.delete("/admin/plans/nobodys")).status_code == 404
        assert (await newcomer.patch("/admin/pools/no", json={"capacity": 1})).status_code == 404
        assert await record.acts(await id_of(newcomer)) == []

    async def test_is_never_made_where_it_cannot_be_put_on_record(
        self, superuser: asyncpg.Connection, oversight: OversightDatabase, alice: Principal
    ) -> None:
        await superuser.execute("ALTER TABLE audit ADD CHECK (action <> 'plan_set')")
        with pytest.raises(asyncpg.CheckViolationError):
            await oversight.set_plan("gold", {}, Act("a test", alice.user_id))
        assert await oversight.plans() == []

    @pytest.mark.parametrize("state", ["suspended", "erasing"])
    async def test_is_refused_to_an_operator_who_may_not_use_the_service(
        self,
        state: str,
        database: TestDatabase,
        superuser: asyncpg.Connection,
        oversight: OversightDatabase,
        alice: Principal,
    ) -> None:
        await set_user_state(superuser, alice.user_id, state)
        act, acts = Act("a test", alice.user_id), ActDatabase(database.settings("dispatch"))
        try:
            with pytest.raises(UserUnavailable):
                await oversight.set_plan("gold", {}, act)
            with pytest.raises(UserUnavailable):
                await acts.looked(act)
        finally:
            await acts.close()
        assert await oversight.plans() == []
        assert await superuser.fetchval("SELECT count(*) FROM audit") == 0
