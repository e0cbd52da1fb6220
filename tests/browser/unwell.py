"""A deployment whose parts go away and come back, and what the pages of it say meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from playwright.async_api import Browser, Locator, expect
from sqlalchemy import make_url

from app.bench.chaos.wire import Wire
from tests.browser.conftest import DESKTOP, visitors
from tests.browser.visitor import LOOK_SECONDS, PATIENCE, Visitor
from tests.support.deployment import STEADY_LEASE, Deployment, deployed
from tests.support.held_ports import held_port
from tests.support.processes import StoaProcess
from tests.support.sites import Site, site
from tests.support.tenancy import TestDatabase
from tests.support.tool_servers.pools import QUICK

OPERATORS = ["stoa-admins"]
NAMES = {"notes": "Notes", "archive": "Archive-of-" + "everything" * 6}
"""The tool servers, and what they are called: the second one as nobody should call his."""
MARGIN = 1
"""Pixels that may be lost in rounding."""

# Every time that the bar came or went, since the page was opened.
WATCH = """
window.bars = [];
const look = () => {
  const isThere = [...document.querySelectorAll("[role=alert]")].some((e) => !e.closest("main"));
  if (isThere !== (window.bars.at(-1) === "came")) window.bars.push(isThere ? "came" : "went");
};
new MutationObserver(look).observe(document, { childList: true, subtree: true });
"""
# How the bar is laid out, as it is seen.
MEASURE = """() => {
  const bars = [...document.querySelectorAll("[role=alert]")];
  const [bar] = bars;
  const box = bar.getBoundingClientRect();
  const style = getComputedStyle(bar);
  const space = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
  const seen = (each) => {
    const { left, top, width, height } = each.getBoundingClientRect();
    return bar.contains(document.elementFromPoint(left + width / 2, top + height / 2));
  };
  const lines = [...bar.querySelectorAll("p, a, button")];
  const actions = [...bar.querySelectorAll("a, button")];
  return {
    bars: bars.length,
    top: box.top,
    wide: box.width,
    isFirst: bar.parentElement.firstElementChild === bar,
    flows: ["static", "relative"].includes(style.position),
    below: bar.nextElementSibling.getBoundingClientRect().top - box.bottom,
    height: box.height,
    overflow: bar.scrollWidth - bar.clientWidth,
    hidden: lines.filter((each) => box.height >= bar.scrollHeight && !seen(each)).length,
    room: bar.clientWidth - space,
    actions: actions.map((each) => {
      const { width, height, top } = each.getBoundingClientRect();
      const said = each.parentElement.parentElement.firstElementChild.getBoundingClientRect();
      return { width, height, isBelow: top >= said.bottom };
    }),
  };
}"""


@dataclass
class Unwell:
    """A deployment, and the ways to and from it."""

    deployment: Deployment
    worker: StoaProcess
    """The one that works now."""
    settings: dict[str, str]
    hook: Site
    """What restarts things when an operator asks for it."""
    to_web: Way
    to_database: Way
    script: Path
    """What the tool servers run."""
    _browser: Browser = field(repr=False)

    @property
    def url(self) -> str:
        """Where people find it."""
        return f"http://127.0.0.1:{self.to_web.port}"

    @asynccontextmanager
    async def people(self) -> AsyncIterator[Callable[..., Awaitable[Visitor]]]:
        """Bring people there, each in a browser of their own that notes each bar.

        When they go, nothing of theirs is under way, and no way is blocked.
        """
        brought: list[Visitor] = []
        async with visitors(self._browser, self.url) as bring:

            async def meet(
                name: str,
                viewport: dict[str, int] = DESKTOP,
                groups: list[str] | None = None,
                **more: Any,
            ) -> Visitor:
                # The gateway's part: a page has no say in who it is taken for.
                headers = self.deployment.issuer.headers(name, groups=groups or [])
                visitor = await bring("", viewport=viewport, extra_http_headers=headers, **more)
                brought.append(visitor)
                await visitor.context.add_init_script(WATCH)
                await visitor.page.goto(self.url)
                await expect(visitor.page.get_by_role("textbox")).to_be_visible()
                return visitor

            try:
                yield meet
            finally:
                self.to_web.clear()
                self.to_database.clear()
            for visitor in brought:
                await visitor.at_rest()

    async def kill_worker(self) -> None:
        """Kill the only worker, and let its lease be over."""
        await self.worker.kill()
        await self.deployment.lease_over(self.worker)

    async def start_worker(self) -> None:
        """Start one, which works from now on."""
        self.worker = await self.deployment.start_worker(**self.settings)

    async def looked_again(self) -> None:
        """Return once the web process has looked at all parts, from the beginning, from now on."""
        looks: set[int] = set()

        def are_new(parts: dict[str, Any]) -> bool:
            looks.add(parts["database"]["version"])
            # The first was over, and the second may have begun.
            return len(looks) > 2

        await self._until(are_new)

    async def works(self) -> None:
        """Return once all parts that everybody shares are known to work."""
        await self._until(
            lambda parts: (
                {"workers", "model:default"} <= set(parts)
                and all(part["status"] == "available" for part in parts.values())
            )
        )

    async def _until(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        headers = self.deployment.issuer.headers("watcher")
        async with asyncio.timeout(PATIENCE), httpx.AsyncClient(trust_env=False) as client:
            while True:
                answer = await client.get(f"{self.url}/runtime", headers=headers)
                parts = {each["component"]: each for each in answer.json()["components"]}
                if holds(parts):
                    return
                await asyncio.sleep(LOOK_SECONDS)

    def children(self) -> set[psutil.Process]:
        """The processes of people's tool servers."""
        below = psutil.Process(self.worker.process.pid).children(recursive=True)
        return {each for each in below if str(self.script) in each.cmdline()}


class Way(Wire):
    """A way that somebody can block: what is under way breaks, and nothing gets through."""

    def __init__(self, port: int, nobody: int) -> None:
        super().__init__(lambda: ("127.0.0.1", nobody if self._blocked else self._to))
        self._to = port
        self._blocked = False

    def block(self) -> None:
        self._blocked = True
        self.drop()

    def clear(self) -> None:
        self._blocked = False


@asynccontextmanager
async def unwell(browser: Browser, template: TestDatabase, folder: Path) -> AsyncIterator[Unwell]:
    """One that works, to begin with."""
    logs = folder / "logs"
    logs.mkdir()
    script = Path(shutil.copy(QUICK, folder / "notes.py"))
    catalogue = folder / "mcp.json"
    child = {"command": sys.executable, "args": ["-I", "-S", str(script)]}
    servers = {name: {**child, "stoa": {"title": title}} for name, title in NAMES.items()}
    catalogue.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    settings = {
        "STOA_MCP_CONFIG": str(catalogue),
        "STOA_MCP_FOLDER": str(folder / "mcp"),
        "STOA_MCP_SANDBOX": "none",
        **STEADY_LEASE,
    }
    with held_port() as nobody, held_port() as port:
        async with deployed(template, logs) as deployment, site() as hook:
            database = make_url(deployment.database.dsn("service"))
            async with (
                Way(int(database.port or 5432), nobody) as to_database,
                Way(port, nobody) as to_web,
            ):
                worker = await deployment.start_worker(**settings)
                of_web = {
                    **settings,
                    **_through(to_database, deployment.database),
                    "STOA_RESTART_URL": f"{hook.url}/restart",
                }
                await deployment.start_web(port=port, fault=None, **of_web)
                place = Unwell(
                    deployment, worker, settings, hook, to_web, to_database, script, browser
                )
                await place.works()
                yield place


def _through(way: Way, database: TestDatabase) -> dict[str, str]:
    def dsn(url: str) -> str:
        by_way = make_url(url).set(host="127.0.0.1", port=way.port)
        return by_way.render_as_string(hide_password=False)

    return {
        "STOA_DATABASE_URL": dsn(database.dsn("service")),
        "STOA_DISPATCH_DATABASE_URL": dsn(database.dsn("dispatch")),
        "STOA_MAINTENANCE_DATABASE_URL": dsn(database.dsn("maintenance")),
    }


def bar(visitor: Visitor) -> Locator:
    """What is said above the page."""
    return visitor.page.locator("[role=alert]:not(main *)")


async def bars(visitor: Visitor) -> list[str]:
    """Each time that it came or went, since the page was opened."""
    noted: list[str] = await visitor.page.evaluate("window.bars")
    return noted


async def assert_in_place(visitor: Visitor, *, actions: int) -> None:
    """The one bar is the first in the page's flow, covers nothing, and its actions can be hit."""
    measured = await visitor.page.evaluate(MEASURE)
    size = visitor.page.viewport_size
    assert size is not None
    on_phone = size["width"] <= 390
    assert (measured["bars"], measured["top"], measured["wide"]) == (1, 0, size["width"])
    assert measured["isFirst"]
    assert measured["flows"]
    assert abs(measured["below"]) <= MARGIN
    assert measured["height"] < size["height"] / 2
    assert measured["overflow"] == 0
    assert measured["hidden"] == 0
    assert len(measured["actions"]) == actions
    for action in measured["actions"]:
        assert action["height"] >= 44
        if on_phone:
            assert abs(action["width"] - measured["room"]) <= MARGIN
            assert action["isBelow"]
    assert not await visitor.is_wider_than_the_screen()
