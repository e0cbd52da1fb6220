"""Another user's thread or run is answered like one that does not exist, on every route.

The routes come from the OpenAPI document, so a new one is covered without asking.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import httpx

from tests.support.service import RunningService

REQUEST_ID = {"X-Request-Id": "5a3e0f0b0c"}


async def routes(http: httpx.AsyncClient) -> list[tuple[str, str, dict[str, Any]]]:
    document = (await http.get("/openapi.json")).json()
    return [
        (method.upper(), path, _example(operation))
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "{thread_id}" in path
    ]


def _example(operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    found: dict[str, Any] = content.get("application/json", {}).get("example", {})
    return found


class TestSomebodyElsesIds:
    async def test_are_answered_like_unknown_ones(self, service: RunningService) -> None:
        alice, bob = service.client("alice-owner"), service.client("bob-stranger")
        thread = (await alice.post("/threads", json={})).json()["thread_id"]
        message = {"messages": [{"role": "user", "content": "mine"}]}
        run = await alice.post(
            f"/threads/{thread}/runs", json={"assistant_id": "agent", "input": message}
        )
        hers = {"thread_id": thread, "run_id": run.json()["run_id"]}
        history = await alice.get(f"/threads/{thread}/runs/{hers['run_id']}/join")
        assert history.status_code == 200
        state = (await alice.get(f"/threads/{thread}/state")).json()
        hers["checkpoint_id"] = state["checkpoint"]["checkpoint_id"]
        unknown = {name: str(uuid4()) for name in hers}
        tried = await routes(alice)
        assert len(tried) >= 14
        for method, path, body in tried:
            answers = [
                await bob.request(
                    method,
                    path.format(**ids),
                    json=body if method != "GET" else None,
                    headers=REQUEST_ID,
                )
                for ids in (hers, unknown)
            ]
            assert answers[0].status_code == 404, (method, path, answers[0].text)
            assert answers[0].content == answers[1].content
            assert _headers(answers[0]) == _headers(answers[1])
        assert (await alice.get(f"/threads/{thread}")).json()["status"] == "idle"
        assert (await bob.post("/threads/count", json={})).json() == 0

    async def test_can_be_used_for_ones_own_thread(self, service: RunningService) -> None:
        alice, bob = service.client("alice-owner"), service.client("bob-owner")
        thread = (await alice.post("/threads", json={"metadata": {"of": "alice"}})).json()
        body = {"thread_id": thread["thread_id"], "metadata": {"of": "bob"}}
        made = await bob.post("/threads", json=body)
        assert made.json()["metadata"] == {"of": "bob"}
        assert (await bob.delete(f"/threads/{thread['thread_id']}")).status_code == 204
        kept = await alice.get(f"/threads/{thread['thread_id']}")
        assert kept.json()["metadata"] == {"of": "alice"}


def _headers(response: httpx.Response) -> dict[str, str]:
    """Those that say something of what was asked for, and not when, or how often before."""
    told = {name: value for name, value in response.headers.items() if name != "date"}
    assert told.pop("ratelimit")
    return told
