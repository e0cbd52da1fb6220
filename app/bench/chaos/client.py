"""A person whose service fails around them: they repeat what was not answered, and read on.

What they do is what a careful client does: every message carries an ``Idempotency-Key`` until it
is answered, and a stream that breaks is read on after the last event, from any web process.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import orjson

from app.bench.chaos.promises import Action, Promise, Promises, Strategy
from app.bench.chaos.stream import Broken, Reading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from random import Random

PATIENCE = 120.0
"""After so long without an answer a person says that something is broken."""
_PAUSE = 0.1
_AWAY = frozenset({HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS})
"""Answers that ask to be asked again."""
_LOST = (httpx.TransportError, AttributeError)
"""How a connection breaks: the latter where anyio looks at a socket that uvloop has closed."""
_STREAM_MODES = ("values", "messages-tuple")


class Refused(Exception):
    """The service says no, for a reason that asking again does not change."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__(f"{response.status_code} {response.text[:300]}")
        self.code = orjson.loads(response.content).get("code")


class Person:
    """Somebody with an assertion, and the addresses at which the service may answer."""

    def __init__(
        self,
        name: str,
        headers: Mapping[str, str],
        origins: Sequence[str],
        http: httpx.AsyncClient,
        promises: Promises,
        random: Random,
    ) -> None:
        """``origins`` may change while it is used: processes come and go."""
        self.name = name
        self._headers = headers
        self._origins = origins
        self._http = http
        self._promises = promises
        self._random = random

    async def say(
        self,
        thread_id: str,
        text: str | None,
        *,
        strategy: Strategy = "enqueue",
        key: str | None = None,
    ) -> Promise:
        """Have a run accepted, and do not wait for it. Without a text: go on with what was left.

        Raises:
            Refused: it is not accepted.
        """
        body, extra = self._message(text, strategy), {"Idempotency-Key": key or uuid4().hex}
        run = await self.ask("POST", f"/threads/{thread_id}/runs", body, extra)
        promise = Promise(self.name, thread_id, run["run_id"], text)
        return self._promises.keep(promise)

    async def say_and_read(self, thread_id: str, text: str) -> Promise:
        """Have a run accepted and read its stream to the end, however often it breaks.

        Raises:
            Refused: it is not accepted.
        """
        body = self._message(text, "enqueue")
        headers = {**self._headers, "Idempotency-Key": uuid4().hex}
        promise: Promise | None = None
        async with asyncio.timeout(PATIENCE):
            while promise is None:
                url = f"{await self._origin()}/threads/{thread_id}/runs/stream"
                request = self._http.stream("POST", url, json=body, headers=headers)
                with suppress(*_LOST, Broken):
                    async with request as response:
                        if not await self._is_answer(response):
                            continue
                        run_id = response.headers["content-location"].rpartition("/")[2]
                        promise = self._promises.keep(Promise(self.name, thread_id, run_id, text))
                        await Reading(promise, self._promises).read(response)
                        return promise
                await asyncio.sleep(_PAUSE)
        await self.read(promise)
        return promise

    async def read(self, promise: Promise) -> None:
        """Read a run's stream to its end, after the last event that was seen."""
        async with asyncio.timeout(PATIENCE):
            while True:
                headers = {**self._headers, "Last-Event-ID": str(promise.last_seen)}
                url = f"{await self._origin()}{promise.location}/stream"
                with suppress(*_LOST, Broken):
                    async with self._http.stream("GET", url, headers=headers) as response:
                        if await self._is_answer(response):
                            await Reading(promise, self._promises).read(response)
                            return
                await asyncio.sleep(_PAUSE)

    async def stop(self, promise: Promise, *, action: Action, wait: bool) -> None:
        """Cancel a run, and remember what the answer promises."""
        path = f"{promise.location}/cancel?wait={int(wait)}&action={action}"
        run = await self.ask("POST", path)
        if run["status"] in {"pending", "running"} or run["state"] == "cancelled":
            promise.cancel_accepted = True
        if run["status"] not in {"pending", "running"}:
            promise.told.add(run["status"])

    async def join(self, promise: Promise) -> None:
        """Wait for a run's final values."""
        await self.ask("GET", f"{promise.location}/join")

    async def messages(self, thread_id: str) -> list[dict[str, Any]]:
        """What the thread holds."""
        state = await self.ask("GET", f"/threads/{thread_id}/state")
        messages: list[dict[str, Any]] = (state["values"] or {}).get("messages", [])
        return messages

    async def ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:  # noqa: ANN401 - whatever JSON comes
        """Ask until there is an answer.

        Raises:
            Refused: the answer is no.
        """
        merged = {**self._headers, **(headers or {})}
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(*_LOST):
                    url = f"{await self._origin()}{path}"
                    response = await self._http.request(method, url, json=body, headers=merged)
                    if await self._is_answer(response):
                        return orjson.loads(response.content) if response.content else None
                await asyncio.sleep(_PAUSE)

    async def _is_answer(self, response: httpx.Response) -> bool:
        """False for one that asks to be asked again.

        Raises:
            Refused: it says no.
        """
        if response.is_success:
            return True
        await response.aread()
        if response.status_code in _AWAY:
            await asyncio.sleep(_PAUSE)
            return False
        refused = Refused(response)
        if response.is_server_error:
            self._promises.breach("a web process failed", f"{response.url.path}: {refused}")
        raise refused

    async def _origin(self) -> str:
        while not self._origins:  # noqa: ASYNC110 - the list is whoever's who starts processes
            await asyncio.sleep(_PAUSE)
        return self._random.choice(self._origins)

    def _message(self, text: str | None, strategy: Strategy) -> dict[str, Any]:
        said = None if text is None else {"messages": [{"role": "user", "content": text}]}
        return {
            "assistant_id": "agent",
            "input": said,
            "stream_mode": _STREAM_MODES,
            "multitask_strategy": strategy,
            "if_not_exists": "create",
        }
