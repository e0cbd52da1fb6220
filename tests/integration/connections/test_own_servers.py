"""Servers of people's own: wherever their addresses lead, they lead to nothing inside."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any, ClassVar

import asyncpg
import httpx
import pytest

from app.outbound.addresses import Address, is_public
from app.outbound.bodies import Bounds
from tests.support.frames import new_thread, read_run, start_run
from tests.support.model_server import Script, ToolCall
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.sites import Site, answer, certificate, redirect, site

PATIENCE = 60
PORT = 8443
PUBLIC = "127.83.9.1"
"""An address of loopback that plays a public one."""
INNER = "127.83.9.2"
NAMES = {
    "open.stoa.dev": [PUBLIC],
    "inner.stoa.dev": [INNER],
    "both.stoa.dev": [PUBLIC, INNER],
    "metadata.stoa.dev": ["169.254.169.254"],
    "mapped.stoa.dev": ["::ffff:127.0.0.1"],
}
CANARY = "k-canary-4711"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("authority"), "open.stoa.dev")


@pytest.fixture(scope="module", autouse=True)
def outside(authority: Path) -> Any:
    """The internet as the worker sees it: names of ours, and one address that is public."""

    async def resolve_by(_resolver: object, name: str) -> Sequence[Address]:
        return [ip_address(each) for each in NAMES.get(name, [])]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.outbound.resolving.resolve_by", resolve_by)
        patch.setattr("app.outbound.guard.is_public", lambda a: str(a) == PUBLIC or is_public(a))
        context = ssl.create_default_context(cafile=authority)
        patch.setattr("app.outbound.mcp_client.public_tls", lambda: context)
        yield


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    async with running_service(
        postgres,
        mcp_own_servers=True,
        mcp_folder=tmp_path_factory.mktemp("mcp"),
        vault_keys="k1:" + base64.b64encode(bytes(range(32))).decode(),
    ) as running:
        yield running


@pytest.fixture
async def inner() -> AsyncIterator[Site]:
    """What nobody is to reach from outside."""
    async with site({"/mcp": answer(b"inner")}, host=INNER, port=PORT) as served:
        yield served


@pytest.fixture
def tls(authority: Path) -> ssl.SSLContext:
    """What a server under the public name proves it with."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority, authority.with_name("key.pem"))
    return context


@pytest.fixture
async def public(tls: ssl.SSLContext) -> AsyncIterator[Site]:
    """A server somewhere on the internet."""
    async with site(tls=tls, host=PUBLIC, port=PORT, name="open.stoa.dev") as served:
        yield served


async def looked_at(service: RunningService, person: str, name: str, **body: Any) -> Any:
    """Add a server, and see how it stands once a worker has looked at it."""
    client = service.client(person)
    added = await client.post("/connections", json={"name": name, **body})
    assert added.status_code == 201, added.text
    async with asyncio.timeout(PATIENCE):
        while True:
            found = (await client.get(f"/connections/{name}")).json()
            if found["state"] not in {"unknown", "checking"}:
                return found
            await asyncio.sleep(0.05)


class TestAnAddressThatIsNoneOfThePublicInternet:
    @pytest.mark.parametrize(
        "url",
        [
            "",
            "open.stoa.dev/mcp",
            "http://open.stoa.dev/mcp",
            "ftp://open.stoa.dev/mcp",
            "file:///etc/passwd",
            "https://localhost/mcp",
            "https://LOCALHOST./mcp",
            "https://127.0.0.1/mcp",
            "https://127.1/mcp",
            "https://2130706433/mcp",
            "https://0x7f000001/mcp",
            "https://0177.0.0.1/mcp",
            "https://10.0.0.1/mcp",
            "https://169.254.169.254/latest/meta-data/",
            "https://100.100.100.200/",
            "https://[::1]/mcp",
            "https://[::ffff:127.0.0.1]/mcp",
            "https://[fd00:ec2::254]/latest/",
            "https://[64:ff9b::a00:1]/mcp",
            "https://[2002:7f00:1::]/mcp",
            "https://[fe80::1%25eth0]/mcp",
            "https://metadata.google.internal/",
            "https://db.internal/mcp",
            "https://postgres/mcp",
            "https://open.stoa.dev./mcp",
            "https://open.stoa.dev:5432/mcp",
            "https://open.stoa.dev:0/mcp",
            "https://me:secret@open.stoa.dev/mcp",
            "https://open.stoa.dev@127.0.0.1/mcp",
            "https://open.stoa.dev\\@127.0.0.1/mcp",
            "https://open.stoa.dev/mcp\r\nHost: inner",
            "https://open.stoa.dev/" + "a" * 5000,
        ],
    )
    async def test_is_answered_422_and_kept_nowhere(
        self, service: RunningService, url: str
    ) -> None:
        client = service.client("mallory")
        refused = await client.post("/connections", json={"name": "mine", "url": url})
        assert refused.status_code == 422
        assert refused.headers["content-type"] == "application/problem+json"
        assert "secret" not in refused.text
        assert (await client.get("/connections")).json() == []


class TestAServerWhoseNameLeadsInside:
    @pytest.mark.parametrize("host", ["inner", "both", "metadata", "mapped"])
    async def test_stands_like_one_that_does_not_exist_and_is_never_connected_to(
        self, service: RunningService, inner: Site, host: str
    ) -> None:
        key = {"kind": "key", "key": CANARY}
        url = f"https://{host}.stoa.dev:{PORT}/mcp"
        found = await looked_at(service, f"mallory-{host}", "mine", url=url, credential=key)
        nowhere = await looked_at(
            service, f"mallory-{host}", "nowhere", url="https://nowhere.stoa.dev/mcp"
        )
        told = ("state", "reason", "tools")
        assert [found[each] for each in told] == [nowhere[each] for each in told]
        assert (found["state"], found["reason"]) == ("unavailable", "unreachable")
        assert inner.connections == 0


class TestAServerThatLeadsElsewhere:
    @pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect"])
    @pytest.mark.parametrize(
        "target",
        [f"http://{INNER}:{PORT}/mcp", f"https://inner.stoa.dev:{PORT}/mcp", "//127.0.0.1/mcp"],
        ids=["address", "name", "relative"],
    )
    async def test_is_left_and_takes_the_key_nowhere(
        self, service: RunningService, public: Site, inner: Site, status: str, target: str
    ) -> None:
        public.replies["/mcp"] = redirect(target, status)
        person = f"mallory-{status[:3]}-{target[:9]}"
        key = {"kind": "key", "header": "X-Api-Key", "key": CANARY}
        found = await looked_at(service, person, "mine", url=public.url + "/mcp", credential=key)
        assert found["state"] == "unavailable"
        assert any(f"X-Api-Key: {CANARY}".lower() in head.lower() for head in public.heads)
        assert inner.connections == 0
        assert CANARY not in str(found)


class TestAServerThatSaysTooMuch:
    async def test_is_unavailable_and_told_of_without_its_words(
        self, service: RunningService, public: Site
    ) -> None:
        public.replies["/mcp"] = answer(b"<script>" + b"x" * 100_000, Content_Type="text/html")
        found = await looked_at(service, "mallory-words", "mine", url=public.url + "/mcp")
        assert found["state"] == "unavailable"
        assert "script" not in str(found)


class Clinging:
    """An MCP server that is like any other until its session is to end: it never lets go."""

    RESULTS: ClassVar[dict[str, Any]] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "clinging", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "cling", "inputSchema": {"type": "object"}}]},
    }

    def __init__(self) -> None:
        self.asked_to_end = asyncio.Event()
        self.left = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = re.search(r"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                if head.startswith("delete"):
                    self.asked_to_end.set()
                    await reader.read()
                    self.left.set()
                    break
                writer.write(self._reply(head, body))
                await writer.drain()
        writer.close()

    def _reply(self, head: str, body: bytes) -> bytes:
        if not head.startswith("post"):
            return answer(b"", status="405 Method Not Allowed", Connection="keep-alive")
        said = json.loads(body)
        if "id" not in said or "method" not in said:
            return answer(b"", status="202 Accepted", Connection="keep-alive")
        known = self.RESULTS.get(said["method"])
        told = {"result": known} if known else {"error": {"code": -32601, "message": "unknown"}}
        reply = json.dumps({"jsonrpc": "2.0", "id": said["id"], **told}).encode()
        return answer(
            reply, Content_Type="application/json", Mcp_Session_Id="s1", Connection="keep-alive"
        )


class TestAServerThatNeverLetsGo:
    async def test_is_left_all_the_same(
        self, service: RunningService, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("app.outbound.mcp_client.CLOSING", Bounds(1000, 0.2))
        clinging = Clinging()
        listener = await asyncio.start_server(clinging.serve, PUBLIC, PORT, ssl=tls)
        async with listener:
            url = f"https://open.stoa.dev:{PORT}/mcp"
            found = await looked_at(service, "mallory-clings", "mine", url=url)
            assert [each["name"] for each in found["tools"]] == ["cling"]
            removed = await service.client("mallory-clings").delete("/connections/mine")
            assert removed.status_code == 204
            await asyncio.wait_for(clinging.asked_to_end.wait(), PATIENCE)
            await asyncio.wait_for(clinging.left.wait(), PATIENCE)


class Echoing(Clinging):
    """Says the key that it is given wherever a server can say anything."""

    NAMES = ("tell", "ask", "fail", "refuse")

    def _reply(self, head: str, body: bytes) -> bytes:
        if not head.startswith("post"):
            return answer(b"", status="405 Method Not Allowed", Connection="keep-alive")
        said = json.loads(body)
        if said.get("method") != "tools/call":
            return super()._reply(head, body)
        number, name = said["id"], said["params"]["name"]
        if name == "refuse":
            denied = f'Bearer realm="{CANARY}"'
            return answer(CANARY.encode(), status="500 Oh", WWW_Authenticate=denied)
        if name == "fail":
            error = {"code": -32602, "message": f"bad {CANARY}", "data": {"key": CANARY}}
            return self._events({"id": number, "error": error})
        if name == "ask":
            form = {"type": "object", "properties": {CANARY: {"type": "string"}}}
            question = {"message": f"Is it {CANARY}?", "requestedSchema": form}
            return self._events(
                {"id": 900, "method": "elicitation/create", "params": question},
                {"id": number, "result": {"content": []}},
            )
        token = said["params"]["_meta"]["progressToken"]
        progress = {"progressToken": token, "progress": 1, "message": f"still {CANARY}"}
        image = base64.b64encode(CANARY.encode()).decode()
        content = [
            {"type": "text", "text": f"It is {CANARY}."},
            {"type": "image", "data": image, "mimeType": "image/png"},
            {"type": "resource_link", "name": CANARY, "uri": f"https://open.stoa.dev/{CANARY}"},
        ]
        result = {
            "content": content,
            "structuredContent": {CANARY: [CANARY]},
            "_meta": {"k": CANARY},
        }
        return self._events(
            {"method": "notifications/progress", "params": progress},
            {"method": "notifications/message", "params": {"level": "error", "data": CANARY}},
            {"id": number, "result": result},
        )

    @staticmethod
    def _events(*messages: dict[str, Any]) -> bytes:
        said = "".join(f"data: {json.dumps({'jsonrpc': '2.0', **each})}\n\n" for each in messages)
        return answer(said.encode(), Content_Type="text/event-stream")


class TestAServerThatRepeatsTheKeyThatItIsGiven:
    async def test_leaves_it_in_no_row_of_the_database_no_log_and_no_answer(
        self,
        service: RunningService,
        tls: ssl.SSLContext,
        monkeypatch: pytest.MonkeyPatch,
        capfd: pytest.CaptureFixture[str],
    ) -> None:
        schema = {"type": "object", "properties": {"a": {"description": CANARY}}}
        tools = [
            {"name": name, "title": CANARY, "description": f"Use {CANARY}", "inputSchema": schema}
            for name in (*Echoing.NAMES, CANARY)
        ]
        results = {**Clinging.RESULTS, "tools/list": {"tools": tools}}
        results["initialize"] = {**results["initialize"], "instructions": f"Say {CANARY}"}
        monkeypatch.setattr(Echoing, "RESULTS", results)
        listener = await asyncio.start_server(Echoing().serve, PUBLIC, PORT, ssl=tls)
        client = service.client("echoed")
        async with listener:
            url = f"https://open.stoa.dev:{PORT}/mcp"
            key = {"kind": "key", "key": CANARY}
            found = await looked_at(service, "echoed", "mine", url=url, credential=key)
            assert {each["name"] for each in found["tools"]} == set(Echoing.NAMES)
            calls = tuple(ToolCall(name=f"mine__{name}") for name in Echoing.NAMES)
            service.model.enqueue(Script(tool_calls=calls))
            thread = await new_thread(client)
            run = await start_run(client, thread, "Go on")
            log, questions = await read_run(client, run), list[dict[str, Any]]()
            while asked := (await client.get("/approvals")).json():
                await answer_all(client, asked)
                questions += asked
                log += await read_run(client, run)
        approved = {each["tool"] for each in questions if each["kind"] == "call"}
        assert approved == set(Echoing.NAMES)
        state = (await client.get(f"/threads/{thread}/state")).json()
        told = [each for each in state["values"]["messages"] if each["type"] == "tool"]
        assert [each["response_metadata"]["stoa"]["tool"] for each in told] == list(Echoing.NAMES)
        assert "[redacted]" in str(told[0]["content"])
        seen = [found, questions, state, [frame.raw.decode() for frame in log], capfd.readouterr()]
        assert CANARY not in str(seen)
        assert service.model.requests
        assert CANARY not in str([each.body for each in service.model.requests])
        rows = await rows_of(service)
        assert "[redacted]" in rows
        assert CANARY not in rows
        assert CANARY.encode().hex() not in rows


async def answer_all(client: httpx.AsyncClient, asked: Sequence[dict[str, Any]]) -> None:
    """Let calls be made; leave those be of which nobody knows what came."""
    for each in asked:
        body = {
            "decision": "approve" if each["kind"] == "call" else "leave_out",
            "arguments_sha256": each["arguments_sha256"],
        }
        decided = await client.post(f"/approvals/{each['approval_id']}", json=body)
        assert decided.status_code == 200, decided.text


async def rows_of(service: RunningService) -> str:
    """All that the database holds, bytes as hexadecimal digits."""
    connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
    try:
        tables = await connection.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        held = [
            await connection.fetchval(f"SELECT string_agg(t::text, ' ') FROM {each['name']} t")
            for each in tables
        ]
    finally:
        await connection.close()
    return "\n".join(each for each in held if each)
