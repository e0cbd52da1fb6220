"""Whoever leaves and comes back is somebody new, and has won nothing by it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from tests.integration.admin.conftest import answer, id_of, start
from tests.support.held_ports import held_port
from tests.support.limits import settled_usage
from tests.support.service import RunningService, running_web
from tests.support.tenancy import PATIENCE
from tests.support.vaults import keys_of

pytestmark = pytest.mark.usefixtures("whole_day")

LIMITS = {"plan": None, "limits": {"tokens_per_day": 900_000, "tokens_per_month": 1_000_000}}


@pytest.fixture
async def database(service: RunningService) -> Any:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    yield connection
    await connection.close()


async def used(person: httpx.AsyncClient) -> dict[str, float]:
    """What of each budget is used."""
    limits = (await person.get("/me/limits")).json()["limits"]
    return {each["name"]: each["used"] for each in limits if each["name"].startswith("tokens_per_")}


async def until(person: httpx.AsyncClient, path: str, name: str, value: str) -> dict[str, Any]:
    """What a path answers, once a field of it has a value."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, Any] = (await person.get(path)).json()
            if found[name] == value:
                return found
            await asyncio.sleep(0.05)


async def leave(person: httpx.AsyncClient) -> str:
    """Leave, and be gone."""
    begun = (await person.delete("/me")).json()
    await until(person, f"/erasures/{begun['erasure_id']}", "state", "done")
    erasure_id: str = begun["erasure_id"]
    return erasure_id


@pytest.fixture
async def spender(
    service: RunningService, operator: httpx.AsyncClient, person: httpx.AsyncClient
) -> httpx.AsyncClient:
    """Somebody who has limits of their own, and has used tokens."""
    await operator.put(f"/admin/users/{await id_of(person)}/limits", json=LIMITS)
    run = (await start(person)).json()
    path = f"/threads/{run['thread_id']}/runs/{run['run_id']}"
    await until(person, path, "status", "success")
    await settled_usage(person, 1)
    return person


class TestWhoeverComesBack:
    async def test_has_used_what_they_used_and_may_use_what_they_might(
        self, spender: httpx.AsyncClient, operator: httpx.AsyncClient
    ) -> None:
        before, old_id = await used(spender), await id_of(spender)
        assert min(before.values()) > 0
        await leave(spender)
        new_id = await id_of(spender)
        assert new_id != old_id
        assert await used(spender) == before
        limits = await answer(operator, "GET", f"/admin/users/{new_id}/limits")
        assert limits["limits"] == LIMITS["limits"]

    async def test_has_won_nothing_by_doing_it_again(self, spender: httpx.AsyncClient) -> None:
        before = await used(spender)
        for _ in range(2):
            await leave(spender)
        assert await used(spender) == before

    async def test_is_known_again_after_the_keys_were_rotated(
        self, service: RunningService, spender: httpx.AsyncClient
    ) -> None:
        before = await used(spender)
        await leave(spender)
        with held_port() as port:
            rotated = service.settings.model_dump() | {
                "signing_keys": keys_of("newer", "signing"),
                "metrics_port": port,
            }
            async with running_web(type(service.settings).model_validate(rotated)) as web:
                spender.base_url = httpx.URL(web.url)
                assert await used(spender) == before

    async def test_is_as_suspended_as_they_were(
        self, person: httpx.AsyncClient, operator: httpx.AsyncClient
    ) -> None:
        suspended = await operator.post(f"/admin/users/{await id_of(person)}/suspend")
        assert suspended.status_code == 200, suspended.text
        await leave(person)
        new_id = await id_of(person)
        assert (await answer(operator, "GET", f"/admin/users/{new_id}"))["state"] == "suspended"
        refused = await start_on(person)
        assert (refused.status_code, refused.json()["code"]) == (403, "user_unavailable")

    async def test_has_used_of_the_month_only_what_was_used_on_earlier_days(
        self, spender: httpx.AsyncClient, database: asyncpg.Connection
    ) -> None:
        before = await used(spender)
        erasure_id = UUID(await leave(spender))
        same_month = await database.fetchval(
            "UPDATE tombstones SET day = day - 1 WHERE erasure_id = $1"
            " RETURNING date_trunc('month', day) = date_trunc('month', day + 1)",
            erasure_id,
        )
        assert await used(spender) == {
            "tokens_per_day": 0,
            "tokens_per_month": before["tokens_per_month"] if same_month else 0,
        }

    async def test_is_new_in_everything_once_their_time_is_over(
        self, spender: httpx.AsyncClient, database: asyncpg.Connection
    ) -> None:
        erasure_id = UUID(await leave(spender))
        kept = await database.fetchval(
            "UPDATE tombstones SET expires_at = clock_timestamp() WHERE erasure_id = $1"
            " RETURNING expires_at - created_at",
            erasure_id,
        )
        assert kept is not None
        assert kept < timedelta(minutes=1)
        assert set((await used(spender)).values()) == {0}

    async def test_is_nobody_to_somebody_else_who_left(
        self, spender: httpx.AsyncClient, service: RunningService
    ) -> None:
        other = service.client(f"another {uuid4().hex}")
        await leave(spender)
        assert set((await used(other)).values()) == {0}


async def start_on(person: httpx.AsyncClient) -> httpx.Response:
    """Begin a thread, which a suspended person may not."""
    return await person.post("/threads", json={})
