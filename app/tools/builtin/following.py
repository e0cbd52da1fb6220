"""Follow redirects, each hop looked at like the first."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2

from app.outbound import check_url
from app.tools.refusal import ToolRefusal

MOST_REDIRECTS = 5


@asynccontextmanager
async def following(
    client: httpx2.AsyncClient,
    url: str,
    *,
    trusted: frozenset[str],
    before: Callable[[str], Awaitable[None]] | None = None,
) -> AsyncIterator[httpx2.Response]:
    """The streamed answer at a redirect's end; ``before`` is asked before each hop.

    Raises:
        ToolRefusal: there is no end, or it is not one to go to.
        UrlRefused: a hop does not look like one to the public internet.
        OutboundError: there is no answer.
    """
    for _ in range(MOST_REDIRECTS + 1):
        url = check_url(url, https_only=False, trusted=trusted)
        if before is not None:
            await before(url)
        async with client.stream("GET", url) as response:
            target = _target(response)
            if target is None:
                yield response
                return
        if url.startswith("https:") and not target.startswith("https:"):
            raise ToolRefusal("The address leads from https to an address without, and is left.")
        url = target
    raise ToolRefusal("The address leads from one to another without an end.")


def _target(response: httpx2.Response) -> str | None:
    if not response.has_redirect_location:
        return None
    try:
        return str(response.url.join(response.headers["location"]))
    except (httpx2.InvalidURL, ValueError):
        raise ToolRefusal("The address leads to something that is no address.") from None
