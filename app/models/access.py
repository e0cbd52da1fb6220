"""The one way to the model servers: a call takes a seat, goes where the seat is, and gives it back.

Whatever goes wrong with a call, it raises a ``ModelError``. An answer is returned once its first
line is there, so a call that failed until then can be made again unseen, maybe on another server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from app.models.answer_stream import AnswerStream
from app.models.call import ModelCall, read_call
from app.models.connection import build_transport
from app.models.errors import ModelError, ModelTimeout
from app.models.failures import error_of_response, error_of_transport, failure_of_pool
from app.models.lines import AnswerCheck, EmbeddingCheck
from app.models.retry import attempts
from app.models.usage import NOTHING, TokenCount, Usage

if TYPE_CHECKING:
    from app.models.scope import RunScope
    from app.models.seats import HeldSeat, Seats
    from app.models.settings import ModelTiming
    from tenancy.scheduler.seats import PoolFailure

_LONGEST_ERROR_TEXT = 64 * 1024
_HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/x-ndjson, application/json",
    # The lines are read here, so they must come as they are.
    "Accept-Encoding": "identity",
}


class ModelAccess:
    """Carries the model calls of one worker. Opened and closed with it."""

    def __init__(self, seats: Seats, timing: ModelTiming) -> None:
        self._seats = seats
        self._timing = timing
        self._wires: dict[str, httpx.AsyncHTTPTransport] = {}

    async def aclose(self) -> None:
        """Close every connection."""
        for wire in self._wires.values():
            await wire.aclose()
        self._wires.clear()

    async def send(self, scope: RunScope, path: str, content: bytes) -> httpx.Response:
        """Make a call for a run, again where that may help, and return its answer.

        Raises:
            ModelError: there is none.
            LeaseLost, TokenBudgetExhausted, DatabaseUnavailable: there is no seat for it.
        """
        call = read_call(path, content)
        async for attempt in attempts(self._timing.retry_seconds):
            with attempt:
                return await self._send(scope, call)
        raise AssertionError("the last attempt returns or raises")

    async def _send(self, scope: RunScope, call: ModelCall) -> httpx.Response:
        held = await self._seats.take(scope.run, call.model)
        stream: AnswerStream | None = None
        try:
            response = await self._open(held, call)
            try:
                if response.status_code != httpx.codes.OK:
                    raise await self._refusal(response)  # noqa: TRY301 - it is closed below
                stream = self._stream(scope, held, call, response)
                await stream.start()
            except BaseException:
                if stream is None:
                    await response.aclose()
                raise
        except BaseException as error:
            failure = failure_of_pool(error)
            if stream is None:
                self._seats.settle(held, NOTHING, failure)
            else:
                stream.failure = failure
                await stream.aclose()
            raise
        return httpx.Response(response.status_code, headers=response.headers, stream=stream)

    def _stream(
        self, scope: RunScope, held: HeldSeat, call: ModelCall, response: httpx.Response
    ) -> AnswerStream:
        check = AnswerCheck() if call.kind == "answer" else EmbeddingCheck()
        count = TokenCount(call, held.seat.context)
        stream = AnswerStream(response, self._timing, check, count)

        def ended(usage: Usage, failure: PoolFailure | None) -> None:
            scope.end(stream)
            self._seats.settle(held, usage, failure)

        stream.when_ended(ended)
        scope.begin(stream)
        return stream

    async def _open(self, held: HeldSeat, call: ModelCall) -> httpx.Response:
        seat = held.seat
        request = httpx.Request(
            "POST",
            f"{seat.url}{call.path}",
            headers=_HEADERS,
            content=call.pinned(seat.context, seat.output),
            extensions={"timeout": self._timing.on_the_wire()},
        )
        try:
            async with asyncio.timeout(self._timing.first_byte_seconds):
                return await self._wire(seat.url).handle_async_request(request)
        except httpx.TransportError as error:
            raise error_of_transport(error) from error
        except TimeoutError:
            raise ModelTimeout from None

    def _wire(self, url: str) -> httpx.AsyncHTTPTransport:
        if url not in self._wires:
            self._wires[url] = build_transport(url)
        return self._wires[url]

    async def _refusal(self, response: httpx.Response) -> ModelError:
        text = b""
        try:
            async with asyncio.timeout(self._timing.stall_seconds):
                async for data in response.aiter_raw():
                    text += data
                    if len(text) > _LONGEST_ERROR_TEXT:
                        break
        except (httpx.TransportError, TimeoutError):
            pass  # the status says enough
        return error_of_response(response.status_code, text.decode(errors="replace"))
