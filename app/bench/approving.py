"""A person who approves what is asked, at a service that may be busy."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATIENCE = 600.0


async def open_approvals(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    """What waits for somebody's word."""
    found: list[dict[str, Any]] = []
    while True:
        path = f"/approvals?limit=100&offset={len(found)}"
        page = await ask(client, "GET", path)
        found += page.json()
        if len(found) >= int(page.headers["x-pagination-total"]):
            return found


async def approve(client: httpx.AsyncClient, approval: Mapping[str, Any]) -> None:
    """Say yes to what was shown."""
    decision = {"decision": "approve", "arguments_sha256": approval["arguments_sha256"]}
    await ask(client, "POST", f"/approvals/{approval['approval_id']}", decision)


async def ask(
    client: httpx.AsyncClient, method: str, path: str, body: Mapping[str, Any] | None = None
) -> httpx.Response:
    """Ask as a careful client does: again, under the same key, where there is no answer."""
    headers = {} if body is None else {"Idempotency-Key": uuid4().hex}

    @retry(
        retry=retry_if_exception(_may_ask_again),
        wait=wait_fixed(1),
        stop=stop_after_delay(_PATIENCE),
    )
    async def once() -> httpx.Response:
        answer = await client.request(method, path, json=body, headers=headers)
        return answer.raise_for_status()

    return await once()


def _may_ask_again(error: BaseException) -> bool:
    """Whether it says that the service is busy, or nothing: an idle connection may be closed."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code == HTTPStatus.SERVICE_UNAVAILABLE
    return isinstance(error, httpx.TransportError)
