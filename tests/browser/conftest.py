"""One Chromium and one development service for all browser tests; a new browser for each person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.browser.visitor import Visitor
from tests.support.chromium import MISSING, find_chromium, is_required, launched
from tests.support.development import development
from tests.support.model_server import ScriptedModelServer

DESKTOP = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
GRAPHS = Path(__file__).parent / "graphs" / "langgraph.json"
PATIENCE_MS = 20_000
SLOTS = 8
"""Model calls at once, as the model server and the service have it."""
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


@pytest.fixture
async def meet(chromium: Browser, stack: Stack) -> AsyncIterator[Meet]:
    """Bring somebody to the service, in a browser of their own."""
    async with visitors(chromium, stack.url) as bring:
        yield bring


@asynccontextmanager
async def visitors(chromium: Browser, url: str) -> AsyncIterator[Meet]:
    contexts = []

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
        contexts.append(context)
        visitor = Visitor(context, await context.new_page(), url)
        if name:
            await visitor.sign_in(name, operator=operator)
        return visitor

    yield bring
    for context in contexts:
        await context.close()
