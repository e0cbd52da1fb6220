"""The restart that a deployment may offer: an address of its own that is asked for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import structlog

from tenancy.errors import NotFound, UpstreamFailed

if TYPE_CHECKING:
    from pydantic import SecretStr

log = structlog.get_logger(__name__)

SECONDS = 10.0


class NoRestart(NotFound):
    """The deployment offers none."""


class RestartFailed(UpstreamFailed):
    """The deployment's own hook did not say that it will be done."""

    code = "restart_failed"
    message = "The deployment did not accept the restart."


async def ask_for_restart(hook: SecretStr, *, seconds: float = SECONDS) -> None:
    """Have the hook restart what it restarts: one POST without a body, any 2xx is a yes.

    What it answers is not read, and a redirect is not followed.

    Raises:
        RestartFailed: it says something else, or nothing in time.
    """
    try:
        async with (
            httpx.AsyncClient(trust_env=False, timeout=seconds) as client,
            asyncio.timeout(seconds),
            client.stream("POST", hook.get_secret_value()) as answer,
        ):
            status = answer.status_code
    except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
        log.warning("the restart hook does not answer", error=type(error).__name__)
        raise RestartFailed from None
    if not httpx.codes.is_success(status):
        log.warning("the restart hook refuses", status=status)
        raise RestartFailed
