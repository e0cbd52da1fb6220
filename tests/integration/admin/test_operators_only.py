"""Operators' routes are for operators: everybody else is refused before anything is looked at."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi.routing import APIRoute

from app.api import application
from tests.integration.admin.conftest import answer, id_of
from tests.integration.admin.recorded import routes
from tests.support.service import RunningService

BODIES = (
    None,
    b"no JSON at all",
    b"x" * 300_000,
    b'{"capacity": "many", "limits": 7, "plan": []}',
)


class TestEveryRoute:
    async def test_refuses_others_whatever_they_send(self, service: RunningService) -> None:
        somebody = service.client("somebody", groups=["singers"])
        me = await id_of(somebody)
        names = {"user_id": me, "plan": "default", "pool": "default", "erasure_id": me}
        broken = dict.fromkeys(names, "%00") | {"user_id": "not-an-id"}
        tried = await routes(somebody)
        assert len(tried) >= 19
        for method, path, _ in tried:
            for ids in (names, broken):
                for body in BODIES:
                    response = await somebody.request(
                        method, path.format(**ids), params={"limit": "much"}, content=body
                    )
                    found = (response.status_code, response.json()["code"])
                    assert found == (403, "forbidden"), (method, path, body)

    @pytest.mark.parametrize(
        "claims",
        [
            {},
            {"groups": ["singers", "stoa-admins-of-old"]},
            {"groups": [["stoa-admins"]]},
            {"roles": ["stoa-admins"], "admin": True},
        ],
        ids=["without groups", "in other groups", "in a group of groups", "by another claim"],
    )
    async def test_takes_nobody_for_an_operator_who_is_none(
        self, service: RunningService, claims: dict[str, Any]
    ) -> None:
        somebody = service.client("somebody", **claims)
        names = dict.fromkeys(("user_id", "plan", "pool", "erasure_id"), await id_of(somebody))
        for method, path, _ in await routes(somebody):
            response = await somebody.request(method, path.format(**names))
            assert (response.status_code, response.json()["code"]) == (403, "forbidden")

    async def test_asks_nobody_in_without_an_identity(self, service: RunningService) -> None:
        nobody = service.client(None)
        for method, path, _ in await routes(nobody):
            ids = dict.fromkeys(("user_id", "plan", "pool", "erasure_id"), uuid4())
            assert (await nobody.request(method, path.format(**ids))).status_code == 401

    async def test_is_there_for_operators(
        self, service: RunningService, operator: httpx.AsyncClient
    ) -> None:
        me = await id_of(operator)
        reading = [path for method, path, _ in await routes(operator) if method == "GET"]
        reading.remove("/admin/erasures/{erasure_id}")  # of nobody, here
        assert len(reading) >= 9
        for path in reading:
            await answer(operator, "GET", path.format(user_id=me))
        alone = service.client("one group only", groups="stoa-admins")
        await answer(alone, "GET", "/admin/queue")

    async def test_is_in_the_document(self, service: RunningService) -> None:
        """Else it would be tried by none of the tests that walk the routes."""
        there = {
            (method, route.path)
            for module in application._ROUTES
            for route in module.router.routes
            if isinstance(route, APIRoute) and route.path.startswith("/admin")
            for method in route.methods or ()
        }
        described = await routes(service.client(None))
        assert there == {(method, path) for method, path, _ in described}
