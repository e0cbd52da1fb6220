"""One's connections to tool servers over HTTP: one's own, write-only, and nobody else's."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api import own_events
from app.connections.own import MOST_OWN_SERVERS
from app.dev.postgres.installation import program
from tests.support.frames import Frame, follow
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.vaults import keys_of

CATALOGUE = {
    "tickets": {
        "url": "https://tickets.example.com/mcp",
        "stoa": {
            "title": "Tickets",
            "credential": {"kind": "header", "name": "X-Key"},
            "tools": {"deny": ["erase"]},
            "approval": {
                "*": "first_use",
                "close": "always",
                "erase": "always",
                "refund": [{"when": {"required": ["amount"]}, "ask": "first_use"}],
            },
        },
    },
    "clock": {"command": "clock", "stoa": {"scope": "shared"}},
}
CANARY = "canary-4f8d7a2e91"
OWN = "https://mcp.stoa-people.org/mcp"
PATIENCE = 30


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("catalogue") / "mcp.json"
    path.write_text(json.dumps({"mcpServers": CATALOGUE}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
async def service(postgres: PostgresServer, catalogue: Path) -> AsyncIterator[RunningService]:
    """A service whose workers are all busy elsewhere: what is to be checked waits."""
    async with running_service(
        postgres,
        worker=False,
        mcp_config=(catalogue,),
        mcp_own_servers=True,
        vault_keys=keys_of("k1"),
        requests_per_minute=1_000_000,
    ) as running:
        yield running


@pytest.fixture
def alice(service: RunningService) -> httpx.AsyncClient:
    return service.client(f"alice {uuid4()}")


@pytest.fixture
def bob(service: RunningService) -> httpx.AsyncClient:
    return service.client(f"bob {uuid4()}")


async def add(http: httpx.AsyncClient, name: str = "mine", **credential: Any) -> httpx.Response:
    body = {"name": name, "url": OWN, **({"credential": credential} if credential else {})}
    return await http.post("/connections", json=body)


async def get(http: httpx.AsyncClient, server: str) -> dict[str, Any]:
    response = await http.get(f"/connections/{server}")
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


def code_of(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


class TestTheList:
    async def test_has_the_operators_servers_for_somebody_new(
        self, alice: httpx.AsyncClient
    ) -> None:
        clock, tickets = (await alice.get("/connections")).json()
        assert (clock["server"], clock["scope"], clock["transport"]) == ("clock", "shared", "stdio")
        assert (clock["state"], clock["credential"]["kind"]) == ("unknown", "none")
        assert tickets == {
            "server": "tickets",
            "title": "Tickets",
            "scope": "per_user",
            "transport": "http",
            "own": False,
            "url": None,
            "enabled": True,
            "credential": {"kind": "key", "is_set": False, "expires_at": None},
            "state": "needs_key",
            "reason": None,
            "tools": [],
            "resources": 0,
            "prompts": 0,
            "approval": {
                "rules": {
                    "*": {"operator": "first_use", "yours": None},
                    "close": {"operator": "always", "yours": None},
                    "refund": {"operator": "by_arguments", "yours": None},
                }
            },
            "listed_at": None,
            "updated_at": None,
        }

    async def test_says_whether_own_servers_may_be_added(self, alice: httpx.AsyncClient) -> None:
        assert (await alice.get("/me")).json()["own_servers"] is True

    async def test_has_ones_own_beside_them(
        self, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        added = await add(alice, "notes")
        assert added.status_code == 201
        listed = (await alice.get("/connections")).json()
        assert [each["server"] for each in listed] == ["clock", "notes", "tickets"]
        assert added.json() == listed[1]
        assert (listed[1]["own"], listed[1]["url"]) == (True, OWN)
        assert len((await bob.get("/connections")).json()) == 2


class TestWhenOneIsAsked:
    async def test_is_made_stricter_for_oneself_alone(
        self, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        said = {"*": "always", "search": "first_use"}
        answer = await alice.put("/connections/clock/approval", json={"rules": said})
        assert answer.status_code == 200
        assert answer.json() == await get(alice, "clock")
        assert answer.json()["approval"]["rules"] == {
            "*": {"operator": "never", "yours": "always"},
            "search": {"operator": "never", "yours": "first_use"},
        }
        theirs = (await get(bob, "clock"))["approval"]["rules"]
        assert theirs == {"*": {"operator": "never", "yours": None}}

    async def test_what_is_said_replaces_what_was(self, alice: httpx.AsyncClient) -> None:
        for said in ({"search": "always"}, {"close": "always"}, {}):
            answer = await alice.put("/connections/tickets/approval", json={"rules": said})
            rules = answer.json()["approval"]["rules"]
            assert {tool: each["yours"] for tool, each in rules.items() if each["yours"]} == said

    async def test_stays_when_one_disconnects(self, alice: httpx.AsyncClient) -> None:
        await alice.put("/connections/clock/approval", json={"rules": {"*": "always"}})
        await alice.post("/connections/clock/disconnect")
        rules = (await get(alice, "clock"))["approval"]["rules"]
        assert rules["*"]["yours"] == "always"

    async def test_is_always_with_a_server_of_ones_own(self, alice: httpx.AsyncClient) -> None:
        added = await add(alice)
        assert added.json()["approval"]["rules"] == {"*": {"operator": "always", "yours": None}}
        answer = await alice.put("/connections/mine/approval", json={"rules": {"a": "first_use"}})
        assert answer.json()["approval"]["rules"]["a"] == {
            "operator": "always",
            "yours": "first_use",
        }

    @pytest.mark.parametrize(
        "body",
        [
            {},
            {"rules": None},
            {"rules": "always"},
            {"rules": ["always"]},
            {"rules": {"*": "never"}},
            {"rules": {"*": None}},
            {"rules": {"": "always"}},
            {"rules": {"x" * 129: "always"}},
            {"rules": {str(number): "always" for number in range(257)}},
            {"rules": {"*": "always"}, "more": 1},
        ],
        ids=lambda body: json.dumps(body)[:40],
    )
    async def test_nothing_else_can_be_said(self, alice: httpx.AsyncClient, body: Any) -> None:
        answer = await alice.put("/connections/clock/approval", json=body)
        assert answer.status_code == 422
        assert (await get(alice, "clock"))["approval"]["rules"] == {
            "*": {"operator": "never", "yours": None}
        }

    async def test_of_no_server_is_refused(
        self, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        await add(bob, "theirs")
        for server in ("nowhere", "theirs", "A B"):
            answer = await alice.put(f"/connections/{server}/approval", json={"rules": {}})
            assert code_of(answer) == (404, "connection_not_found")


class TestAKey:
    async def test_is_set_and_never_told(self, alice: httpx.AsyncClient) -> None:
        answer = await alice.put("/connections/tickets/key", json={"key": CANARY})
        assert (answer.status_code, answer.content) == (204, b"")
        found = await get(alice, "tickets")
        assert found["credential"] == {"kind": "key", "is_set": True, "expires_at": None}
        assert (found["state"], found["enabled"]) == ("checking", True)
        assert CANARY not in (await alice.get("/connections")).text

    async def test_is_forgotten(self, alice: httpx.AsyncClient) -> None:
        await alice.put("/connections/tickets/key", json={"key": CANARY})
        for _ in range(2):
            assert (await alice.delete("/connections/tickets/key")).status_code == 204
            found = await get(alice, "tickets")
            assert (found["credential"]["is_set"], found["state"]) == (False, "needs_key")
            assert found["enabled"]

    async def test_is_only_for_servers_that_take_one(self, alice: httpx.AsyncClient) -> None:
        for request in (
            alice.put("/connections/clock/key", json={"key": "k"}),
            alice.delete("/connections/clock/key"),
        ):
            assert code_of(await request) == (409, "no_key_wanted")

    @pytest.mark.parametrize(
        "key", ["", " k", "k\r\nX-Other: 1", "k\tk", "schlüssel", "k" * 4097, 7, None]
    )
    async def test_that_no_header_can_carry_is_refused_and_not_repeated(
        self, alice: httpx.AsyncClient, key: object
    ) -> None:
        answer = await alice.put("/connections/tickets/key", json={"key": key})
        assert answer.status_code == 422
        assert "X-Other" not in answer.text
        assert not (await get(alice, "tickets"))["credential"]["is_set"]


class TestConnectingAndDisconnecting:
    async def test_disconnecting_forgets_the_key_and_stays(self, alice: httpx.AsyncClient) -> None:
        await alice.put("/connections/tickets/key", json={"key": CANARY})
        answer = await alice.post("/connections/tickets/disconnect")
        assert answer.status_code == 200
        found = await get(alice, "tickets")
        assert answer.json() == found
        assert (found["state"], found["enabled"]) == ("disconnected", False)
        assert not found["credential"]["is_set"]

    @pytest.mark.parametrize("how", ["connect", "reconnect"])
    async def test_connecting_puts_into_use_what_was_disconnected(
        self, alice: httpx.AsyncClient, how: str
    ) -> None:
        await alice.post("/connections/clock/disconnect")
        answer = await alice.post(f"/connections/clock/{how}")
        assert answer.status_code == 202
        assert (answer.json()["state"], answer.json()["enabled"]) == ("checking", True)

    async def test_setting_a_key_does_so_too(self, alice: httpx.AsyncClient) -> None:
        await alice.post("/connections/tickets/disconnect")
        await alice.put("/connections/tickets/key", json={"key": "k"})
        assert (await get(alice, "tickets"))["enabled"]

    async def test_each_change_makes_another_version(
        self, service: RunningService, alice: httpx.AsyncClient
    ) -> None:
        """So that no call is made under what was before."""
        versions = []
        for method, path, body in (
            ("PUT", "key", {"key": "a"}),
            ("PUT", "key", {"key": "a"}),
            ("POST", "reconnect", None),
            ("POST", "disconnect", None),
            ("POST", "connect", None),
            ("DELETE", "key", None),
            ("PUT", "key", {"key": "b"}),
        ):
            answer = await alice.request(method, f"/connections/tickets/{path}", json=body)
            assert answer.is_success, answer.text
            versions.append(await version_of(service, alice, "tickets"))
        assert versions == [2, 3, 4, 5, 6, 6, 7]  # there was no key left to forget

    async def test_removing_is_for_ones_own(self, alice: httpx.AsyncClient) -> None:
        assert code_of(await alice.delete("/connections/tickets")) == (409, "not_your_server")
        await add(alice, kind="key", key=CANARY)
        assert (await alice.delete("/connections/mine")).status_code == 204
        assert code_of(await alice.get("/connections/mine")) == (404, "connection_not_found")

    async def test_nothing_of_a_removed_server_passes_for_one_of_the_same_name(
        self, service: RunningService, alice: httpx.AsyncClient
    ) -> None:
        await add(alice, kind="key", key="first")
        before = await version_of(service, alice, "mine")
        await alice.delete("/connections/mine")
        await add(alice, kind="key")
        found = await get(alice, "mine")
        assert (found["credential"]["is_set"], found["state"]) == (False, "needs_key")
        assert await version_of(service, alice, "mine") > before


async def version_of(service: RunningService, http: httpx.AsyncClient, server: str) -> int:
    connections = service.web.services.connections
    user_id = (await http.get("/me")).json()["user_id"]
    found = await connections.find(Person(user_id), server)
    return found.version


class Person:
    def __init__(self, user_id: str) -> None:
        self.user_id: Any = user_id


class TestAServerOfOnesOwn:
    @pytest.mark.parametrize(
        "url",
        [
            "http://mcp.stoa-people.org/mcp",
            "https://somebody:secret@mcp.stoa-people.org/mcp",
            "https://127.0.0.1/mcp",
            "https://[::1]/mcp",
            "https://10.1.2.3/mcp",
            "https://169.254.169.254/latest",
            "https://localhost/mcp",
            "https://mcp.stoa-people.org:22/mcp",
            "ftp://mcp.stoa-people.org/",
            "mcp.stoa-people.org",
            "",
            f"https://mcp.stoa-people.org/{'x' * 3000}",
        ],
    )
    async def test_is_on_the_public_internet_by_https(
        self, alice: httpx.AsyncClient, url: str
    ) -> None:
        answer = await alice.post("/connections", json={"name": "mine", "url": url})
        assert answer.status_code == 422
        assert "secret" not in answer.text
        assert (await alice.get("/connections/mine")).status_code == 404

    @pytest.mark.parametrize("name", ["memory", "callback", "Mine", "my__server", "-a", "", "ü"])
    async def test_has_a_name_of_its_own(self, alice: httpx.AsyncClient, name: str) -> None:
        assert (await add(alice, name)).status_code == 422

    async def test_takes_nobodys_name(self, alice: httpx.AsyncClient) -> None:
        assert code_of(await add(alice, "tickets")) == (409, "connection_exists")
        await add(alice)
        assert code_of(await add(alice)) == (409, "connection_exists")

    @pytest.mark.parametrize(
        "header",
        ["Host", "connection", "Transfer-Encoding", "Cookie", "Mcp-Session-Id", "X Key", "X:K", ""],
    )
    async def test_gets_its_key_in_no_header_that_means_something_else(
        self, alice: httpx.AsyncClient, header: str
    ) -> None:
        answer = await add(alice, kind="key", header=header, key="k")
        assert answer.status_code == 422
        assert (await alice.get("/connections/mine")).status_code == 404

    @pytest.mark.parametrize(
        "credential",
        [
            {"kind": "none", "key": "k"},
            {"kind": "oauth", "key": "k"},
            {"kind": "none", "header": "X-Key"},
            {"kind": "password"},
            {"kind": "key", "user_id": "somebody"},
        ],
    )
    async def test_is_refused_with_what_would_do_nothing(
        self, alice: httpx.AsyncClient, credential: dict[str, Any]
    ) -> None:
        assert (await add(alice, **credential)).status_code == 422

    async def test_waits_for_its_authorization(self, alice: httpx.AsyncClient) -> None:
        added = (await add(alice, kind="oauth")).json()
        assert (added["state"], added["credential"]["kind"]) == ("needs_authorization", "oauth")

    async def test_is_one_of_so_many(self, alice: httpx.AsyncClient) -> None:
        answers = await asyncio.gather(
            *(add(alice, f"server-{n}") for n in range(MOST_OWN_SERVERS + 2))
        )
        assert sorted(each.status_code for each in answers) == [201] * MOST_OWN_SERVERS + [409] * 2
        assert {code_of(each)[1] for each in answers if each.is_error} == {"too_many_own_servers"}


@pytest.fixture(scope="module")
async def strict(postgres: PostgresServer, catalogue: Path) -> AsyncIterator[RunningService]:
    """No own servers, and no vault."""
    async with running_service(
        postgres, worker=False, mcp_config=(catalogue,), mcp_own_servers=False
    ) as running:
        yield running


class TestWhereTheyAreNotAllowed:
    async def test_own_servers_are_refused(self, strict: RunningService) -> None:
        http = strict.client("somebody")
        assert (await http.get("/me")).json()["own_servers"] is False
        assert code_of(await add(http)) == (403, "own_servers_not_allowed")

    async def test_without_a_vault_no_key_is_kept_and_the_rest_works(
        self, strict: RunningService
    ) -> None:
        http = strict.client("somebody")
        answer = await http.put("/connections/tickets/key", json={"key": CANARY})
        assert code_of(answer) == (409, "vault_not_configured")
        assert CANARY not in answer.text
        for path in ("connect", "disconnect"):
            assert (await http.post(f"/connections/tickets/{path}")).is_success
        assert (await http.delete("/connections/tickets/key")).status_code == 204


class TestSomebodyElsesServer:
    async def test_is_answered_like_an_unknown_one(
        self, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        await add(alice, "hers", kind="key", key=CANARY)
        document = (await alice.get("/openapi.json")).json()
        tried = [
            (method.upper(), path, example(operation))
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
            if "/connections/{server}" in path
        ]
        assert len(tried) >= 8
        for method, path, body in tried:
            answers = [
                await bob.request(
                    method,
                    path.format(server=server),
                    json=body if method != "GET" else None,
                    headers={"X-Request-Id": "5a3e0f0b0c"},
                )
                for server in ("hers", "nobodys", "NO-NAME", "a%00b")
            ]
            assert answers[0].status_code == 404, (method, path, answers[0].text)
            assert len({(each.status_code, each.content) for each in answers}) == 1, (method, path)
        assert (await get(alice, "hers"))["credential"]["is_set"]
        assert (await get(alice, "hers"))["enabled"]

    async def test_can_have_the_same_name_as_ones_own(
        self, alice: httpx.AsyncClient, bob: httpx.AsyncClient
    ) -> None:
        await add(alice, kind="key", key=CANARY)
        assert (await add(bob)).status_code == 201
        assert (await bob.delete("/connections/mine")).status_code == 204
        assert (await get(alice, "mine"))["credential"]["is_set"]


def example(operation: dict[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    found: dict[str, Any] = content.get("application/json", {}).get("example", {})
    return found


class TestTheFeed:
    @pytest.fixture(autouse=True)
    def quick_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(own_events, "LOOK_SECONDS", 0.05)

    async def test_tells_of_ones_own_connections_in_every_process(
        self, service: RunningService, bob: httpx.AsyncClient
    ) -> None:
        elsewhere = await service.start_web()
        subject = f"alice {uuid4()}"
        alice = service.client(subject)
        alice_there = service.client(subject, url=elsewhere.url)
        async with (
            alice_there.stream("GET", "/events") as mine,
            bob.stream("GET", "/events") as others,
            asyncio.timeout(PATIENCE),
        ):
            hers, his = follow(mine), follow(others)
            assert [(await anext(each)).event for each in (hers, his)] == ["limits", "limits"]
            await alice.put("/connections/tickets/key", json={"key": CANARY})
            told = await next_connection(hers)
            assert told == await get(alice, "tickets")
            await add(alice)
            assert (await next_connection(hers))["server"] == "mine"
            await alice.delete("/connections/mine")
            assert await next_connection(hers) == {"server": "mine", "removed": True}
            await bob.post("/connections/clock/disconnect")
            assert (await next_connection(his))["server"] == "clock"


async def next_connection(frames: AsyncIterator[Frame]) -> dict[str, Any]:
    async for frame in frames:
        if frame.event == "connection":
            found: dict[str, Any] = frame.data
            return found
    raise AssertionError


class TestACanary:
    async def test_is_in_no_log_and_in_no_dump_of_the_database(
        self,
        service: RunningService,
        alice: httpx.AsyncClient,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        await add(alice, kind="key", header="X-Key", key=CANARY)
        await alice.put("/connections/tickets/key", json={"key": f"{CANARY}-again"})
        await alice.put("/connections/clock/key", json={"key": CANARY})
        await alice.put("/connections/tickets/key", json={"key": f"{CANARY}\n"})
        await add(alice, "memory", kind="key", key=CANARY)
        await alice.post("/connections/mine/reconnect")
        dumped = await dump(service)
        assert "COPY public.connections" in dumped
        written = "".join(capfd.readouterr())
        assert "route=/connections" in written
        forms = (CANARY, CANARY.encode().hex())
        for said in (dumped, written):
            assert not any(re.search(form, said) for form in forms)


async def dump(service: RunningService) -> str:
    """Everything that a database's administrator can read."""
    process = await asyncio.create_subprocess_exec(
        str(program("pg_dump")),
        service.postgres.dsn("owner", service.database),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return out.decode()
