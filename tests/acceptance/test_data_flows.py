"""Where personal data goes: to what ``docs/data-flows.md`` lists, and nowhere else.

A person uses all that leads anywhere, in processes whose every connection, packet, lookup of a name
and program is noted by the C library.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest

from tests.integration.connections.oauth.stage import visit
from tests.support.collector import collector
from tests.support.deployment import Deployment, deployed
from tests.support.frames import read_run, start_run
from tests.support.front_door import FrontDoor, front_door
from tests.support.model_server import Script, ToolCall
from tests.support.oauth_server.authorization import authorization_server
from tests.support.oauth_server.resource import protected_mcp_server
from tests.support.raw_server import Exchange, raw_server
from tests.support.socket_guard import Guard
from tests.support.tenancy import TestDatabase
from tests.support.tool_servers.http import http_tool_server
from tests.support.vaults import keys_of

TABLE = Path(__file__).parents[2] / "docs" / "data-flows.md"
PAGE = f"{uuid4().hex}.com"
"""A host that nobody has: looking it up is all that can be done about it."""
PATIENCE = 30
LOOK_SECONDS = 0.1
EVERY_TOOL = (
    ToolCall(name="remember", arguments={"content": "Ada plays chess on Sundays."}),
    ToolCall(name="recall", arguments={"query": "chess"}),
    ToolCall(name="fetch", arguments={"url": f"https://{PAGE}/"}),
    ToolCall(name="far__add", arguments={"a": 1, "b": 2}),
    ToolCall(name="near__whoami"),
    ToolCall(name="protected__whoami"),
)


@dataclass
class World:
    """A deployment that is watched, and where it may connect to."""

    deployment: Deployment
    guard: Guard
    door: FrontDoor
    web: str
    programs: set[str]
    places: dict[str, str]
    """Ways, by where they lead."""

    def ways(self) -> set[str]:
        """The ways that were taken; a place that leads no known way stands for itself."""
        taken = self.guard.noted("connect") | self.guard.noted("send")
        return {self.places.get(each, each) for each in taken}


def resolvers() -> set[str]:
    """Where names are looked up."""
    lines = Path("/etc/resolv.conf").read_text(encoding="utf-8").splitlines()
    servers = (line.split()[1] for line in lines if line.startswith("nameserver "))
    return {f"[{each}]:53" if ":" in each else f"{each}:53" for each in servers}


def place(url: str) -> str:
    parts = urlsplit(url)
    return f"{socket.gethostbyname(parts.hostname or '')}:{parts.port}"


@pytest.fixture
def guard(tmp_path: Path) -> Guard:
    if not sys.platform.startswith("linux") or shutil.which("cc") is None:
        if os.environ.get("CI"):
            pytest.fail("connections cannot be noted without Linux and a C compiler")
        pytest.skip("connections are noted on Linux, by what a C compiler makes")
    return Guard.compiled(tmp_path)


@pytest.fixture
async def world(template: TestDatabase, guard: Guard, tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        door = await stack.enter_async_context(front_door())
        collecting = await stack.enter_async_context(collector())
        far = await stack.enter_async_context(http_tool_server())
        authorization = await stack.enter_async_context(authorization_server())
        protected = await stack.enter_async_context(protected_mcp_server(authorization))
        prices = await stack.enter_async_context(raw_server(_publish))
        hook = await stack.enter_async_context(raw_server(_restart))
        (tmp_path / "logs").mkdir()
        deployment = await stack.enter_async_context(deployed(template, tmp_path / "logs"))
        credential = {"kind": "oauth", "origins": [authorization.origin]}
        near = Path(__file__).parents[1] / "support" / "tool_servers" / "stdio.py"
        servers = {
            "far": {"url": far.url},
            "near": {"command": sys.executable, "args": ["-I", "-S", str(near)]},
            "protected": {"url": protected.url, "stoa": {"credential": credential}},
        }
        catalogue = tmp_path / "mcp.json"
        catalogue.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
        settings = {
            **guard.environment,
            "STOA_MCP_CONFIG": str(catalogue),
            "STOA_MCP_FOLDER": str(tmp_path / "mcp"),
            "STOA_MCP_SANDBOX": "none",
            "STOA_VAULT_KEYS": keys_of("k1"),
            "STOA_PUBLIC_URL": door.url,
            "STOA_EMBEDDING_MODEL": "smollm2",
            "STOA_OTLP_URL": collecting.url,
            "STOA_CATALOGUE_URL": prices.url,
            "STOA_RESTART_URL": hook.url,
            "STOA_CATALOGUE_FOLDER": str(tmp_path / "prices"),
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_API_KEY": "a key",
            "HTTPS_PROXY": "http://127.0.0.1:9",
        }
        web = await deployment.start_shipped_web(**settings)
        await deployment.start_shipped_worker(**settings)
        await prices.arrived.wait()
        door.open_to(web.url, deployment.issuer)
        yield World(
            deployment,
            guard,
            door,
            web.url,
            programs={sys.executable},
            places={
                place(database_url(deployment)): "database",
                place(deployment.model.url): "model",
                place(deployment.issuer.url): "issuer",
                place(far.url): "tool server",
                place(protected.url): "tool server (protected)",
                place(authorization.origin): "authorization server",
                place(collecting.url): "traces",
                place(prices.url): "catalogue",
                place(hook.url): "restart",
                **dict.fromkeys(resolvers(), "name"),
            },
        )


async def _publish(exchange: Exchange) -> None:
    assert exchange.method == "GET"
    await exchange.answer(b'{"one": {"models": {"small": {}}}}')


async def _restart(exchange: Exchange) -> None:
    assert exchange.method == "POST"
    await exchange.answer(b"")


def database_url(deployment: Deployment) -> str:
    return deployment.database.dsn("service")


async def lives_through_everything(world: World) -> None:
    """Connects a server, has every tool called, takes everything along, and leaves."""
    async with world.door.browser(f"ada-{uuid4().hex[:6]}") as browser:
        begin = await browser.post("/connections/protected/authorize")
        assert begin.status_code == 200, begin.text
        await browser.get(await visit(begin.json()["authorization_url"]))
        await until_available(browser, "protected")
        world.deployment.model.enqueue(Script(tool_calls=EVERY_TOOL), Script(text="Done."))
        run = await start_run(browser, str(uuid4()), if_not_exists="create")
        while (await read_run(browser, run))[-1].data["status"] == "interrupted":
            for asked in (await browser.get("/approvals")).json():
                said = {"decision": "approve", "arguments_sha256": asked["arguments_sha256"]}
                answer = await browser.post(f"/approvals/{asked['approval_id']}", json=said)
                assert answer.status_code == 200, answer.text
        assert (await browser.get("/me/export")).status_code == 200
        left = await browser.delete("/me")
        assert left.status_code == 202, left.text
        async with asyncio.timeout(PATIENCE):
            while (await browser.get(left.headers["location"])).json()["state"] != "done":  # noqa: ASYNC110
                await asyncio.sleep(LOOK_SECONDS)


async def has_it_restarted(world: World) -> None:
    """An operator asks for it; the deployment leaves it at that."""
    operator = world.deployment.issuer.headers("an operator", groups=["stoa-admins"])
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        asked = await client.post(f"{world.web}/admin/restart", headers=operator)
    assert asked.status_code == 202, asked.text


async def until_available(browser: httpx.AsyncClient, server: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while (await browser.get(f"/connections/{server}")).json()["state"] != "available":  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)


WAYS_OUT = """
import asyncio, socket, subprocess, sys, uvloop, psycopg
async def connect():
    try:
        await asyncio.open_connection("localhost", 9)
    except OSError:
        pass
uvloop.run(connect())
try:
    psycopg.connect("postgresql://127.0.0.2:9/x")
except psycopg.OperationalError:
    pass
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.3", 9))
subprocess.run([sys.executable, "-c", ""], env={}, check=True)
"""


class TestTheGuard:
    def test_notes_connections_packets_names_and_programs_of_every_library(
        self, guard: Guard
    ) -> None:
        environment = {**os.environ, **guard.environment}
        subprocess.run([sys.executable, "-c", WAYS_OUT], env=environment, check=True)
        assert guard.noted("connect") >= {"127.0.0.1:9", "127.0.0.2:9"}
        assert guard.noted("send") == {"127.0.0.3:9"}
        assert "localhost" in guard.noted("name")
        assert guard.noted("program") == {sys.executable}


class TestWhatLeavesTheProcesses:
    async def test_goes_to_what_the_table_lists_and_nowhere_else(self, world: World) -> None:
        await lives_through_everything(world)
        await has_it_restarted(world)
        ways = world.ways()
        assert ways == {*world.places.values()}
        listed = TABLE.read_text(encoding="utf-8")
        assert all(f"`{way.partition(' (')[0]}`" in listed for way in ways)
        # The name servers are asked for pages' names; the C library only for what settings name.
        settled = {urlsplit(f"//{each}").hostname for each in world.places}
        assert world.guard.noted("name") <= settled | {"localhost"}
        assert world.guard.noted("program") == world.programs
