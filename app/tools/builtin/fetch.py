"""The tool that fetches a page of the public web."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version

import httpx2
from langchain_core.tools import StructuredTool

from app.outbound import OutboundError, Resolve, UrlRefused, guarded_client
from app.outbound.reading import read_bounded
from app.outbound.resolving import resolve
from app.tools.builtin.following import following
from app.tools.builtin.pages import Page, kind_of, read_page
from app.tools.builtin.robots import Robots, RobotsMemory
from app.tools.builtin.visits import SHOWN, Fetch, Visits, host_of
from app.tools.calls import AgentTool
from app.tools.refusal import ToolRefusal

SECONDS = 30.0
_EXCHANGE_SECONDS = 15.0
_LARGEST = 2 * 1024 * 1024
ELSEWHERE = (
    "The address leads to another host, and was not followed there: that needs a call of its own."
    " To go on, fetch this:"
)
_ACCEPT = "text/html, application/xhtml+xml, text/*;q=0.9, application/json;q=0.9, */*;q=0.1"

# Pages are read beside the event loop, few at once: reading them is work for the processor.
_READERS = ThreadPoolExecutor(2, thread_name_prefix="read page")


class Fetcher:
    """Fetches pages for one visitor."""

    def __init__(
        self,
        *,
        visitor: Hashable,
        memory: RobotsMemory,
        trusted: frozenset[str] = frozenset(),
        resolve: Resolve = resolve,
        tls: ssl.SSLContext | None = None,
        seconds: float = SECONDS,
        leaves_host: bool = True,
    ) -> None:
        """``leaves_host``: whether redirects are followed to other hosts than the first."""
        self._agent = f"Stoa/{version('stoa')}"
        self._robots = Robots(memory, visitor, self._agent)
        self._trusted = trusted
        self._resolve = resolve
        self._tls = tls
        self._seconds = seconds
        self._leaves_host = leaves_host

    async def fetch(self, url: str) -> Page:
        """Fetch one page, wherever its address leads.

        Raises:
            ToolRefusal: there is none to be had; the message says why.
        """
        try:
            async with asyncio.timeout(self._seconds), self._client() as client:
                return await self._fetch(client, url)
        except TimeoutError:
            raise ToolRefusal("The page took too long.") from None
        except (UrlRefused, OutboundError) as error:
            raise ToolRefusal(str(error)) from None

    async def _fetch(self, client: httpx2.AsyncClient, url: str) -> Page:
        only = None if self._leaves_host else host_of(url, self._trusted)
        before = partial(self._require_permission, client, only)
        async with following(client, url, trusted=self._trusted, before=before) as response:
            if not response.is_success:
                raise ToolRefusal(f"The server answered {response.status_code}.")
            content_type = response.headers.get("content-type", "")
            kind_of(content_type)
            body = await read_bounded(response, _LARGEST, _EXCHANGE_SECONDS)
            where = str(response.url)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(_READERS, read_page, body, content_type, where)

    async def _require_permission(
        self, client: httpx2.AsyncClient, only: str | None, url: str
    ) -> None:
        """Return if a hop may be visited: the person lets it be, and the site does."""

        def may_visit(hop: str) -> bool:
            return only is None or host_of(hop, self._trusted) == only

        if not may_visit(url):
            raise ToolRefusal(f"{ELSEWHERE} {url}")
        await self._robots.require_permission(client, url, self._trusted, may_visit)

    def _client(self) -> httpx2.AsyncClient:
        """One for each page: nothing is kept from one to the next."""
        return guarded_client(
            https_only=False,
            trusted=self._trusted,
            headers={"User-Agent": self._agent, "Accept": _ACCEPT},
            answer_bytes=_LARGEST,
            seconds=_EXCHANGE_SECONDS,
            resolve=self._resolve,
            tls=self._tls,
        )


def fetch_tool(fetcher: Fetcher, visits: Visits | None = None) -> AgentTool:
    """The tool ``fetch``. ``visits`` says when its person is asked; None: never."""

    async def fetch(url: str, start: int = 0, max_length: int = SHOWN) -> str:
        """Fetch a page of the public web as text (HTML becomes Markdown), a part at a time."""
        if visits is not None:
            await visits.require_approval({"url": url, "start": start, "max_length": max_length})
        return shown(await fetcher.fetch(url), start, max_length)

    tool = StructuredTool.from_function(coroutine=fetch, args_schema=Fetch)
    return AgentTool(tool, read_only=True, timeout_seconds=SECONDS + 10, policy=visits)


def shown(page: Page, start: int, most: int) -> str:
    """A part of a page, with where it is from and how to go on.

    Raises:
        ToolRefusal: the page ends before it.
    """
    length = len(page.text)
    if start and start >= length:
        raise ToolRefusal(f"The page has only {length} characters.")
    end = min(start + most, length)
    lines = [f"URL: {page.url}", f"Type: {page.kind}"]
    if page.title:
        lines.append(f"Title: {page.title}")
    if start or end < length:
        rest = f" Fetch again with start={end} for more." if end < length else ""
        lines.append(f"Characters {start} to {end} of {length}.{rest}")
    return "\n".join(lines) + "\n\n" + (page.text[start:end] or "(The page is empty.)")
