"""What cannot be accepted: a clear problem document each, and nothing stored."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.service import RunningService

JSON = {"Content-Type": "application/json"}
PATIENCE = 30
SECRET = "canary sentence of mine"


def human(content: object = "Hello", **more: object) -> dict[str, object]:
    return {"messages": [{"type": "human", "content": content, **more}]}


def run_of(**fields: object) -> dict[str, object]:
    return {"assistant_id": "agent", "input": human(), **fields}


@pytest.fixture
async def http(service: RunningService) -> httpx.AsyncClient:
    return service.client(f"bad-{uuid4().hex[:8]}")


@pytest.fixture
async def thread(http: httpx.AsyncClient) -> str:
    made = await http.post("/threads", json={})
    return str(made.json()["thread_id"])


def assert_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    assert SECRET not in response.text
    return problem


class TestABody:
    @pytest.mark.parametrize(
        ("raw", "status"),
        [
            (b"not json", 400),
            (b'{"metadata": NaN}', 400),
            (b'{"metadata": {"a": 1e999}}', 422),
            (b'{"metadata": {"a": "\\u0000"}}', 422),
            (b'{"metadata": {"a\\u0000": 1}}', 422),
            (b'{"metadata": {"a": "\\ud800"}}', 400),
            (b'{"metadata": {"a": "\xff"}}', 400),
            (b"[" * 10_000 + b"]" * 10_000, 400),
            (b'{"metadata": {"a": ' + b"[" * 150 + b"]" * 150 + b"}}", 400),
            (b'{"metadata": ' + b"9" * 5000 + b"}", 400),
            (b"[]", 422),
            (b"null", 422),
            (b'{"metadata": "text"}', 422),
            (b'{"canary sentence of mine": 1}', 422),
            (b'{"thread_id": "canary sentence of mine"}', 422),
            (b'{"thread_id": 7}', 422),
            (b'{"if_exists": "canary sentence of mine"}', 422),
            (b'{"ttl": 0}', 422),
            (b'{"ttl": {"ttl": 5, "strategy": "keep_latest"}}', 422),
            (b'{"ttl": {"strategy": "delete"}}', 422),
            (b'{"supersteps": [{"updates": []}]}', 422),
            (b'{"metadata": {"a": "' + b"x" * 70_000 + b'"}}', 422),
        ],
    )
    async def test_that_is_not_right_is_refused(
        self, http: httpx.AsyncClient, raw: bytes, status: int
    ) -> None:
        assert_problem(await http.post("/threads", content=raw, headers=JSON), status)
        assert (await http.post("/threads/count", json={})).json() == 0

    async def test_with_huge_numbers_is_kept_as_it_is(self, http: httpx.AsyncClient) -> None:
        metadata = {"big": 2**70, "float": 1e22, "tiny": 1e-300}
        made = await http.post("/threads", json={"metadata": metadata})
        assert made.json()["metadata"] == metadata

    async def test_of_another_type_is_refused(self, http: httpx.AsyncClient) -> None:
        form = await http.post("/threads", content=b"{}", headers={"Content-Type": "text/plain"})
        assert_problem(form, 415)

    async def test_may_be_empty_where_nothing_is_required(self, http: httpx.AsyncClient) -> None:
        assert (await http.post("/threads")).status_code == 200

    async def test_of_50_mb_is_refused_while_it_arrives(
        self, http: httpx.AsyncClient, service: RunningService
    ) -> None:
        """The answer comes after 8 MiB of a body that never ends."""
        url = httpx.URL(service.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        authorization = http.headers["authorization"]
        writer.write(
            f"POST /threads HTTP/1.1\r\nHost: {url.netloc.decode()}\r\n"
            f"Authorization: {authorization}\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for _ in range(9):
            writer.write(b"100000\r\n" + b" " * 0x100000 + b"\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n"), PATIENCE)
        assert b" 413 " in head
        writer.close()

    async def test_that_is_sent_whole_gets_its_answer_all_the_same(
        self, http: httpx.AsyncClient
    ) -> None:
        assert_problem(await http.post("/threads", content=b" " * 50_000_000, headers=JSON), 413)


class TestAnOfferToSwitchProtocols:
    @pytest.mark.parametrize(
        ("method", "offer"),
        [
            ("POST", "Upgrade: h2c\r\nContent-Length: {length}\r\n"),
            ("GET", "Upgrade: websocket\r\nContent-Length: {length}\r\n"),
            ("POST", "Upgrade: h2c\r\nTransfer-Encoding: chunked\r\n"),
            ("CONNECT", "Content-Length: {length}\r\n"),
        ],
    )
    async def test_hides_no_second_request(
        self, service: RunningService, method: str, offer: str
    ) -> None:
        hidden = b"GET /info HTTP/1.1\r\nHost: x\r\n\r\n"
        url = httpx.URL(service.url)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        offered = offer.format(length=len(hidden))
        writer.write(f"{method} /ok HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n".encode())
        writer.write(f"{offered}\r\n".encode())
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
        writer.write(hidden)
        answer += await asyncio.wait_for(reader.read(), PATIENCE)
        assert b" 400 " in answer.partition(b"\r\n")[0]
        assert answer.count(b"HTTP/1.1") == 1
        writer.close()

    async def test_without_a_body_is_passed_over(self, http: httpx.AsyncClient) -> None:
        offer = {"Connection": "Upgrade", "Upgrade": "h2c"}
        assert (await http.get("/ok", headers=offer)).status_code == 200


class TestARun:
    @pytest.mark.parametrize(
        "fields",
        [
            {"input": None},
            {"input": {}},
            {"input": {"messages": []}},
            {"input": {"messages": None}},
            {"input": {"messages": [7]}},
            {"input": human(""), "stream_mode": "values"},
            {"input": human("  \n")},
            {"input": human([])},
            {"input": human(7)},
            {"input": human([{"type": "text", "text": ""}])},
            {"input": human(["a"] * 1001)},
            {"input": human([{"type": "image_url", "image_url": "https://example.org/x.png"}])},
            {"input": {"messages": [{"type": "ai", "content": SECRET}]}},
            {"input": {"messages": [{"role": "assistant", "content": SECRET}]}},
            {"input": {"messages": [{"type": "human", "role": "assistant", "content": "x"}]}},
            {"input": {"messages": [{"type": "tool", "content": "x", "tool_call_id": "1"}]}},
            {"input": {"messages": [{"role": "system", "content": SECRET}]}},
            {"input": {"messages": [{"type": "remove", "content": "", "id": "x"}]}},
            {"input": {"messages": [["ai", SECRET]]}},
            {"input": human(tool_calls=[])},
            {"input": human(id="")},
            {"input": human(id="x" * 500)},
            {"input": {**human(), "other": 1}},
            {"input": human("x", additional_kwargs={"a": {"lc": 1}})},
            {"input": human("x", additional_kwargs=None)},
            {"input": human("x", response_metadata=[])},
            {"input": human("x", role=None)},
            {"input": {"messages": [{"lc": 1, "type": "constructor", "id": ["x"], "kwargs": {}}]}},
            {"input": [1]},
            {"config": {"configurable": {"user_id": "somebody"}}},
            {"config": {"configurable": {"namespace": "somebody"}}},
            {"config": {"configurable": {"tenant": "somebody"}}},
            {"config": {"configurable": {"run_id": "x"}}},
            {"config": {"configurable": {"__pregel_resuming": True}}},
            {"config": {"configurable": {"langgraph_auth_user": {}}}},
            {"config": {"configurable": {"checkpoint_id": str(uuid4())}}},
            {"config": {"metadata": {"run_id": str(uuid4())}}},
            {"config": {"run_id": str(uuid4())}},
            {"config": {"callbacks": []}},
            {"config": {"recursion_limit": 0}},
            {"config": {"recursion_limit": 26}},
            {"config": {"recursion_limit": True}},
            {"metadata": {"run_id": "x"}},
            {"context": {"user_id": "somebody"}},
            {"context": {"a": [{"lc": 1}]}},
            {"command": {"resume": "yes"}},
            {"interrupt_before": ["model"]},
            {"interrupt_after": "*"},
            {"webhook": "https://example.org"},
            {"after_seconds": -1},
            {"after_seconds": "5"},
            {"after_seconds": True},
            {"after_seconds": 31_536_001},
            {"priority": 101},
            {"priority": -101},
            {"priority": 1.5},
            {"priority": "1"},
            {"priority": True},
            {"feedback_keys": ["a"]},
            {"on_completion": "delete"},
            {"on_disconnect": "stop"},
            {"multitask_strategy": "replace"},
            {"durability": "exit"},
            {"checkpoint_during": False},
            {"stream_mode": "events"},
            {"stream_mode": ["values", "tools"]},
            {"stream_subgraphs": "yes"},
            {"checkpoint": {"checkpoint_id": "banana"}},
            {"checkpoint": {"checkpoint_id": str(uuid4()), "checkpoint_ns": "sub:1"}},
            {"checkpoint": {"checkpoint_id": str(uuid4())}, "checkpoint_id": str(uuid4())},
            {"user_id": "somebody"},
            {"assistant_id": 7},
            {"assistant_id": ""},
        ],
    )
    async def test_that_cannot_do_what_it_says_is_refused(
        self, http: httpx.AsyncClient, thread: str, fields: dict[str, object]
    ) -> None:
        for route in ("", "/stream", "/wait"):
            response = await http.post(f"/threads/{thread}/runs{route}", json=run_of(**fields))
            assert_problem(response, 422)
        assert (await http.get(f"/threads/{thread}/runs")).json() == []

    async def test_in_the_background_has_no_client_to_end_with(
        self, http: httpx.AsyncClient, thread: str
    ) -> None:
        body = run_of(on_disconnect="cancel")
        assert_problem(await http.post(f"/threads/{thread}/runs", json=body), 422)
        assert (await http.get(f"/threads/{thread}/runs")).json() == []

    async def test_with_a_message_of_2_mb_is_refused(
        self, http: httpx.AsyncClient, thread: str
    ) -> None:
        response = await http.post(
            f"/threads/{thread}/runs", json=run_of(input=human("é" * 1_000_000))
        )
        assert assert_problem(response, 422)["code"] == "message_too_large"

    @pytest.mark.parametrize("assistant", ["nobody", str(uuid4())], ids=["a name", "an id"])
    async def test_of_an_unknown_assistant_is_refused(
        self, http: httpx.AsyncClient, thread: str, assistant: str
    ) -> None:
        response = await http.post(f"/threads/{thread}/runs", json=run_of(assistant_id=assistant))
        assert assert_problem(response, 404)["code"] == "assistant_not_found"

    async def test_from_an_unknown_checkpoint_is_refused(
        self, http: httpx.AsyncClient, thread: str
    ) -> None:
        body = run_of(checkpoint_id=str(uuid4()))
        response = await http.post(f"/threads/{thread}/runs", json=body)
        assert assert_problem(response, 404)["code"] == "checkpoint_not_found"

    async def test_on_an_unknown_thread_is_refused_or_makes_it(
        self, http: httpx.AsyncClient
    ) -> None:
        path = f"/threads/{uuid4()}/runs"
        assert_problem(await http.post(path, json=run_of()), 404)
        made = await http.post(path, json=run_of(if_not_exists="create"))
        assert made.status_code == 200

    async def test_may_carry_what_clients_send_without_meaning_anything(
        self, http: httpx.AsyncClient, thread: str
    ) -> None:
        body = run_of(
            command=None,
            interrupt_before=[],
            webhook=None,
            stream_mode=[],
            stream_resumable=True,
            stream_subgraphs=False,
            on_disconnect="continue",
            multitask_strategy="enqueue",
            durability="async",
            checkpoint=None,
            config={"configurable": {"thread_id": str(uuid4())}, "tags": [], "recursion_limit": 5},
        )
        accepted = await http.post(f"/threads/{thread}/runs", json=body)
        assert accepted.status_code == 200, accepted.text
        assert accepted.json()["thread_id"] == thread


class TestAnAddress:
    @pytest.mark.parametrize(
        ("method", "path", "status"),
        [
            ("GET", "/threads/banana", 422),
            ("GET", "/threads/banana/state", 422),
            ("DELETE", "/threads/banana", 422),
            ("GET", "/threads/{thread}/runs/banana", 422),
            ("GET", "/threads/{thread}?user_id=x", 422),
            ("GET", "/threads/{thread}/runs?limit=-1", 422),
            ("GET", "/threads/{thread}/runs?limit=100000000000000000000", 422),
            ("GET", "/threads/{thread}/runs?status=banana", 422),
            ("GET", "/threads/{thread}/state?select=banana", 422),
            ("GET", "/threads/{thread}/state/banana", 422),
            ("GET", "/nowhere", 404),
            ("PUT", "/threads", 405),
        ],
    )
    async def test_that_means_nothing_is_refused(
        self, http: httpx.AsyncClient, thread: str, method: str, path: str, status: int
    ) -> None:
        assert_problem(await http.request(method, path.format(thread=thread)), status)

    @pytest.mark.parametrize("position", ["banana", "-2", "1.5", "٣", "9" * 40, "1, 2"])
    async def test_of_a_position_that_no_stream_has_is_refused(
        self, http: httpx.AsyncClient, thread: str, position: str
    ) -> None:
        run = (await http.post(f"/threads/{thread}/runs", json=run_of())).json()
        response = await http.get(
            f"/threads/{thread}/runs/{run['run_id']}/stream",
            headers={b"Last-Event-ID": position.encode()},
        )
        assert_problem(response, 400)


class TestAnIdentity:
    async def test_is_needed(self, service: RunningService) -> None:
        response = await service.client(None).get("/me")
        assert_problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"

    async def test_that_is_expired_or_meant_for_others_is_refused(
        self, service: RunningService
    ) -> None:
        for claims in ({"lifetime": -60}, {"aud": "others"}, {"iss": "https://example.org"}):
            assert_problem(await service.client("late", **claims).get("/me"), 401)

    async def test_that_comes_twice_is_refused(self, service: RunningService) -> None:
        one, two = (service.issuer.assertion(name) for name in ("one", "two"))
        response = await service.client(None).get(
            "/me",
            headers=[("Authorization", f"Bearer {one}"), ("Authorization", f"Bearer {two}")],
        )
        assert_problem(response, 400)

    async def test_is_not_asked_for_where_nobody_is_known(self, service: RunningService) -> None:
        nobody = service.client(None)
        pages = (
            *("/", "/chat/x", "/inbox", "/usage", "/queue", "/tools", "/memory", "/data"),
            *("/leaving/x", "/operator/people", "/operator/people/x"),
        )
        for path in ("/ok", "/info", "/ready", "/openapi.json", *pages):
            assert (await nobody.get(path)).status_code == 200

    async def test_is_asked_for_before_the_body_is_read(self, service: RunningService) -> None:
        response = await service.client(None).post("/threads", content=b"{" * 100, headers=JSON)
        assert_problem(response, 401)


class TestAPageOfAnotherOrigin:
    @pytest.mark.parametrize(
        "headers",
        [
            {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
        ],
    )
    async def test_changes_nothing(self, http: httpx.AsyncClient, headers: dict[str, str]) -> None:
        assert_problem(await http.post("/threads", json={}, headers=headers), 403)
        assert (await http.post("/threads/count", json={})).json() == 0

    async def test_is_told_from_the_services_own(
        self, http: httpx.AsyncClient, service: RunningService
    ) -> None:
        for headers in (
            {"Sec-Fetch-Site": "same-origin", "Origin": "https://chat.example"},
            {"Origin": service.url},
        ):
            assert (await http.post("/threads", json={}, headers=headers)).status_code == 200
