"""Leaving over HTTP: begun once, told of to whoever asks, and proven by a receipt at the end."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.erasure.receipts import verify_receipt
from tests.support.service import RunningService, running_web

DONE_SECONDS = 30


async def left(person: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    """The erasure that a person has begun of themselves, whom the service knows."""
    await person.get("/me")
    answer = await person.request("DELETE", "/me", **more)
    assert answer.status_code == 202, answer.text
    begun: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"/erasures/{begun['erasure_id']}"
    return begun


async def done(person: httpx.AsyncClient, erasure_id: str) -> dict[str, Any]:
    """The erasure once it is done."""
    async with asyncio.timeout(DONE_SECONDS):
        while True:
            answer = await person.get(f"/erasures/{erasure_id}")
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            if found["state"] == "done":
                return found
            await asyncio.sleep(0.05)


async def refusal(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


async def in_the_database(service: RunningService, statement: str, *arguments: Any) -> Any:
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()


async def everybody(service: RunningService) -> set[UUID]:
    """Whom the service knows; those whom another test has leave may be gone the next time."""
    return set(await in_the_database(service, "SELECT array_agg(user_id) FROM users"))


def somebody() -> str:
    return f"leaver {uuid4().hex}"


class TestWhoeverLeaves:
    async def test_is_told_how_far_it_is_and_given_a_receipt_at_last(
        self, service: RunningService
    ) -> None:
        person = service.client(somebody())
        await person.post("/threads", json={"metadata": {"kept": "for a while"}})
        erasure_id = (await left(person))["erasure_id"]
        found = await done(person, erasure_id)
        assert found["deleted"]["threads"] == 1
        assert set(found["remaining"].values()) == {0}
        assert (found["requested_by"], found["failure"], found["step"]) == ("person", None, "done")
        assert found["requested_at"] <= found["verified_at"] <= found["ended_at"]
        published = (await service.client(None).get("/.well-known/jwks.json")).content
        claims = verify_receipt(found["receipt"], published)
        assert claims["erasure_id"] == erasure_id
        assert (claims["deleted"], claims["remaining"]) == (found["deleted"], found["remaining"])

    async def test_is_somebody_new_when_they_come_back(self, service: RunningService) -> None:
        person = service.client(somebody())
        before = (await person.get("/me")).json()["user_id"]
        thread = (await person.post("/threads", json={})).json()["thread_id"]
        await done(person, (await left(person))["erasure_id"])
        assert (await person.get("/me")).json()["user_id"] != before
        assert (await person.get(f"/threads/{thread}")).status_code == 404

    async def test_is_answered_the_same_erasure_again(self, idle: RunningService) -> None:
        person = idle.client(somebody())
        begun = await left(person)
        assert (begun["state"], begun["step"], begun["receipt"]) == ("begun", "record", None)
        assert await left(person, json={}) == begun

    async def test_is_answered_the_same_erasure_once_it_is_done_and_is_nobody_new(
        self, service: RunningService
    ) -> None:
        person = service.client(somebody())
        told = await done(person, (await left(person))["erasure_id"])
        before = await everybody(service)
        again = await person.delete("/me")
        assert (again.status_code, again.json()) == (202, told)
        assert await everybody(service) <= before

    async def test_has_to_be_here(self, idle: RunningService) -> None:
        stranger = idle.client(somebody())
        before = await everybody(idle)
        assert await refusal(await stranger.delete("/me")) == (404, "user_not_found")
        assert await everybody(idle) <= before

    async def test_can_do_nothing_else_from_then_on(self, idle: RunningService) -> None:
        person = idle.client(somebody())
        thread = (await person.post("/threads", json={})).json()["thread_id"]
        await left(person)
        tried = [
            ("GET", "/me"),
            ("GET", f"/threads/{thread}"),
            ("POST", "/threads"),
            ("GET", "/me/limits"),
        ]
        for method, path in tried:
            answer = await person.request(method, path, json={} if method == "POST" else None)
            assert await refusal(answer) == (403, "user_unavailable"), path

    async def test_may_be_suspended(self, idle: RunningService) -> None:
        person = idle.client(somebody())
        me = (await person.get("/me")).json()
        user_id = UUID(me["user_id"])
        await in_the_database(
            idle, "UPDATE users SET state = 'suspended' WHERE user_id = $1", user_id
        )
        suspended = (await person.get("/me")).json()
        assert (me["state"], suspended["state"]) == ("active", "suspended")
        assert (await left(person))["state"] == "begun"

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"content": b'{"sure": true}'}, 422),
            ({"content": b"[]"}, 422),
            ({"content": b"{"}, 400),
            ({"content": b" " * 2000}, 413),
            ({"content": b"{}", "headers": {"Content-Type": "text/plain"}}, 415),
            ({"params": {"dry_run": "true"}}, 422),
        ],
        ids=["a field", "a list", "no JSON", "too much", "not declared", "in the address"],
    )
    async def test_says_nothing_with_it(
        self, idle: RunningService, body: dict[str, Any], status: int
    ) -> None:
        person = idle.client(somebody())
        await person.get("/me")
        declared = {"headers": {"Content-Type": "application/json"}, **body}
        assert (await person.request("DELETE", "/me", **declared)).status_code == status
        assert (await person.get("/me")).status_code == 200
        operator = idle.client(somebody(), groups=["stoa-admins"])
        path = f"/admin/users/{(await person.get('/me')).json()['user_id']}"
        assert (await operator.request("DELETE", path, **declared)).status_code == status
        assert (await person.get("/me")).status_code == 200

    async def test_has_to_be_somebody(self, idle: RunningService) -> None:
        assert (await idle.client(None).delete("/me")).status_code == 401

    async def test_is_not_erased_where_nothing_could_prove_it(self, idle: RunningService) -> None:
        without = idle.settings.model_copy(update={"signing_keys": None})
        async with running_web(without) as web:
            person = idle.client(somebody(), url=web.url)
            await person.get("/me")
            assert await refusal(await person.delete("/me")) == (503, "erasure_not_configured")
            assert (await person.get("/me")).status_code == 200
            assert (await person.get("/.well-known/jwks.json")).json() == {"keys": []}


class TestAnErasure:
    async def test_is_told_to_whoever_knows_its_id_without_making_them_somebody(
        self, idle: RunningService
    ) -> None:
        begun = await left(idle.client(somebody()))
        before = await everybody(idle)
        stranger = idle.client(somebody())
        assert (await stranger.get(f"/erasures/{begun['erasure_id']}")).json() == begun
        unknown = await stranger.get(f"/erasures/{uuid4()}")
        assert await refusal(unknown) == (404, "erasure_not_found")
        assert await everybody(idle) <= before

    async def test_is_not_told_to_nobody(self, idle: RunningService) -> None:
        begun = await left(idle.client(somebody()))
        nobody = idle.client(None)
        assert (await nobody.get(f"/erasures/{begun['erasure_id']}")).status_code == 401

    async def test_says_nothing_of_whose_it_is(self, idle: RunningService) -> None:
        name = somebody()
        person = idle.client(name)
        user_id = (await person.get("/me")).json()["user_id"]
        said = json.dumps(await left(person))
        assert user_id not in said
        assert name not in said


class TestTheKeys:
    async def test_are_there_for_anybody_and_may_be_kept_for_a_while(
        self, idle: RunningService
    ) -> None:
        answer = await idle.client(None).get("/.well-known/jwks.json")
        (key,) = answer.json()["keys"]
        assert (key["kid"], key["kty"], key["crv"]) == ("signing", "OKP", "Ed25519")
        assert answer.headers["Cache-Control"].startswith("public, max-age=")
