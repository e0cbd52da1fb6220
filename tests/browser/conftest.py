"""One Chromium and one development service for all browser tests; a new browser for each person."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.office import POLICY, SEND_SECONDS, Office, office
from tests.browser.travel_desk import TravelDesk, travel_desk
from tests.browser.visitor import Visitor
from tests.support.chromium import MISSING, find_chromium, is_required, launched
from tests.support.development import development
from tests.support.held_ports import held_port
from tests.support.model_server import ScriptedModelServer
from tests.support.oauth_server.authorization import authorization_server
from tests.support.oauth_server.resource import ProtectedMcpServer, protected_mcp_server
from tests.support.vaults import keys_of

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
PATIENCE_MS = 60_000
"""What is awaited comes in a moment; on a busy machine that is many seconds."""
SLOTS = 8
"""Model calls at once, as the model server and the service have it."""
KEY = "canary-key-of-the-vault"
READS = ["train", "map_of", "platform"]
Meet = Callable[..., Awaitable[Visitor]]


@dataclass
class Stack:
    """A development service and the model server behind it."""

    url: str
    model: ScriptedModelServer

    @property
    def stalls(self) -> int:
        """How many answers have stalled so far."""
        return sum(each.stalled_at is not None for each in self.model.requests)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the browser tests out where there is no browser, unless one is required."""
    left_out = [item for item in items if item.get_closest_marker("browser")]
    if left_out and find_chromium() is None and not is_required():
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line that they were left out."""
    if find_chromium() is None and not is_required():
        terminalreporter.write_line(f"Browser tests were left out: {MISSING}.", yellow=True)


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.fail(MISSING)
    expect.set_options(timeout=PATIENCE_MS)
    async with launched(path) as browser:
        yield browser


@pytest.fixture(scope="session")
async def stack(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("browser") / "data"
    async with (
        ScriptedModelServer(slots=SLOTS) as model,
        development(
            data, model.url, STOA_GRAPHS=str(GRAPHS), STOA_OLLAMA_CAPACITY=str(SLOTS)
        ) as url,
    ):
        yield Stack(url, model)


@dataclass
class ToolStack(Stack):
    """The same, with tool servers."""

    travel: TravelDesk
    """Anybody may use it."""
    vault: TravelDesk
    """It wants a key."""
    guarded: ProtectedMcpServer
    """It wants people to sign in."""
    office: Office
    """People are asked before its tools are called. It is ``post``, too, whose answers are not
    waited for as long."""


@pytest.fixture(scope="session")
def held_ports() -> Iterator[tuple[int, int]]:
    """Two ports that nobody else is given meanwhile."""
    with held_port() as one, held_port() as other:
        yield one, other


@pytest.fixture(scope="session")
async def tools(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory, held_ports: tuple[int, int]
) -> AsyncIterator[ToolStack]:
    folder = tmp_path_factory.mktemp("tools")
    port, nobody = held_ports
    async with (
        ScriptedModelServer(slots=SLOTS) as model,
        travel_desk() as travel,
        travel_desk(KEY) as vault,
        authorization_server() as authorization,
        protected_mcp_server(authorization) as guarded,
        office() as asking,
    ):
        signing_in = {"kind": "oauth", "origins": [authorization.origin]}
        catalogue = {
            "travel": {"url": travel.url, "stoa": {"trust": {"read_only": READS}}},
            "vault": {"url": vault.url, "stoa": {"credential": {"kind": "header"}}},
            "guarded": {"url": guarded.url, "stoa": {"credential": signing_in}},
            "office": {"url": asking.url, "stoa": {"approval": POLICY}},
            "post": {
                "url": asking.url,
                "stoa": {"approval": POLICY, "timeout": SEND_SECONDS},
            },
            "gone": {
                "url": f"http://127.0.0.1:{nobody}/mcp",
                "stoa": {"title": "The lost one"},
            },
        }
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": catalogue}), encoding="utf-8")
        settings = {
            "STOA_MCP_CONFIG": str(folder / "mcp.json"),
            "STOA_MCP_OWN_SERVERS": "true",
            "STOA_VAULT_KEYS": keys_of("k1"),
            "STOA_PUBLIC_URL": f"http://localhost:{port}",
            "STOA_OLLAMA_CAPACITY": str(SLOTS),
        }
        async with development(folder / "data", model.url, at=port, **settings) as url:
            yield ToolStack(url, model, travel, vault, guarded, asking)


@pytest.fixture
async def welcome(chromium: Browser, tools: ToolStack) -> AsyncIterator[Meet]:
    """Bring somebody to the service that has tools, in a browser of their own."""
    async with visitors(chromium, tools.url, tools.model) as bring:
        yield bring


@pytest.fixture
async def meet(chromium: Browser, stack: Stack) -> AsyncIterator[Meet]:
    """Bring somebody to the service, in a browser of their own."""
    async with visitors(chromium, stack.url, stack.model) as bring:
        yield bring


@pytest.fixture
async def olga(stack: Stack, meet: Meet) -> AsyncIterator[Visitor]:
    """An operator. The model takes one call at a time as long as she is here."""
    olga = await meet("Olga", operator=True)
    await olga.send("PATCH", "/admin/pools/default", {"capacity": 1})
    yield olga
    for request in stack.model.requests:
        stack.model.release(request)
    await olga.send("PATCH", "/admin/pools/default", {"capacity": None})


@asynccontextmanager
async def visitors(
    chromium: Browser, url: str, model: ScriptedModelServer | None = None
) -> AsyncIterator[Meet]:
    """Bring people, and leave nothing of theirs under way when they go, and no script."""
    brought: list[Visitor] = []

    async def bring(
        name: str,
        *,
        viewport: dict[str, int] = DESKTOP,
        locale: str = "en-US",
        operator: bool = False,
        **options: Any,
    ) -> Visitor:
        context = await chromium.new_context(
            viewport={"width": viewport["width"], "height": viewport["height"]},
            locale=locale,
            **options,
        )
        context.set_default_timeout(PATIENCE_MS)
        visitor = Visitor(context, await context.new_page(), url)
        brought.append(visitor)
        if name:
            await visitor.sign_in(name, operator=operator)
        return visitor

    try:
        yield bring
        if model is not None:
            for request in model.requests:
                model.release(request)
            for visitor in brought:
                await visitor.at_rest()
            model.forget_scripts()
    finally:
        for visitor in brought:
            await visitor.context.close()
