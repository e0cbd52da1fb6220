"""The one way to the model servers: a call takes a seat, goes where the seat is, and gives it back.

Each call is a task of its run's. Whatever goes wrong with it, whoever reads the answer is told by a
``ModelError``. Until a line of the answer was passed on, a call that failed is made again unseen,
maybe on another server; each time with a seat of its own.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx

from app.models.answer import Answer
from app.models.call import ModelCall, read_call
from app.models.connection import build_transport
from app.models.errors import ModelEmpty, ModelError, ModelTimeout
from app.models.failures import error_of_response, error_of_transport, failure_of_pool
from app.models.lines import AnswerCheck, EmbeddingCheck, LineReader, only_loaded
from app.models.retry import attempts
from app.models.usage import TokenCount
from app.models.whole import joined
from app.request_id import HEADER
from app.telemetry.spans import call_span

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from app.models.scope import RunScope
    from app.models.seats import HeldSeat, Seats
    from app.models.settings import ModelTiming
    from app.telemetry.spans import Facts
    from tenancy.scheduler.seats import Seat

_LONGEST_ERROR_TEXT = 64 * 1024
_LAST_SECONDS = 1.0
"""How long a server may take to end an answer that is whole; then the connection is not kept."""
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

    async def send(self, scope: RunScope, path: str, content: bytes) -> Answer:
        """Make a call for a run, again where that may help, and return its answer once it begins.

        Raises:
            ModelError: there is none.
            LeaseLost, TokenBudgetExhausted, DatabaseUnavailable: there is no seat for it.
        """
        call = read_call(path, content)
        answer = Answer(scope)
        answer.comes_from(scope.start(self._carry_out(call, answer), f"model call {path}"))
        await answer.begun()
        return answer

    async def _carry_out(self, call: ModelCall, answer: Answer) -> None:
        if call.is_streamed:
            await self._persist(call, answer)
            return
        parts: list[dict[str, Any]] = []
        for each in call.pieces():
            parts += await self._persist(each, answer)
        await answer.put(joined(call, parts), last=True)

    async def _persist(self, call: ModelCall, answer: Answer) -> list[dict[str, Any]]:
        async for attempt in attempts(self._timing.retry_seconds):
            # Not in the attempt: why there is no seat is final.
            held = await self._seats.take(answer.scope.run, call.model)
            with attempt, call_span("model call") as facts:
                facts.say({"stoa.model": held.model, "stoa.pool": held.seat.pool})
                return await self._try(held, call, answer, facts)
        raise AssertionError("the last attempt returns or raises")

    async def _try(
        self, held: HeldSeat, call: ModelCall, answer: Answer, facts: Facts
    ) -> list[dict[str, Any]]:
        """Make the call with this seat, which is given back however that ends."""
        count = TokenCount(call, held.seat.context)
        parts: list[dict[str, Any]] = []
        error: ModelError | None = None
        try:
            async with self._opened(held.seat, call, answer.scope) as response:
                parts = await self._read(response, call, count, answer)
        except ModelError as raised:
            error = raised
        except asyncio.CancelledError:
            count.cut_off()
            raise
        finally:
            usage = count.total()
            settled = self._seats.settle(held, usage, failure_of_pool(error))
            facts.say({"stoa.prompt_tokens": usage.prompt_tokens})
            facts.say({"stoa.output_tokens": usage.output_tokens})
            facts.say({"stoa.code": None if error is None else error.code})
        if error is not None and not answer.has_begun:
            # Before the next seat is taken: a pool that fails is out by then.
            await asyncio.shield(settled)
            raise error
        if error is not None:
            facts.fail()
            answer.fail(error)
        return parts

    async def _read(
        self, response: httpx.Response, call: ModelCall, count: TokenCount, answer: Answer
    ) -> list[dict[str, Any]]:
        check = AnswerCheck() if call.kind == "answer" else EmbeddingCheck()
        parts: list[dict[str, Any]] = []
        seconds, is_first = self._timing.first_byte_seconds, True
        async with aclosing(_lines(response)) as lines:
            while not check.done and (line := await _next(lines, seconds)) is not None:
                part = check.line(line)
                count.line(part)
                if is_first and only_loaded(part):
                    raise ModelEmpty
                if call.is_streamed:
                    await answer.put(line, last=check.done)
                else:
                    parts.append(part)
                seconds, is_first = self._timing.stall_seconds, False
            check.end()
            with suppress(ModelError):
                await _next(lines, _LAST_SECONDS)
        return parts

    @asynccontextmanager
    async def _opened(
        self, seat: Seat, call: ModelCall, scope: RunScope
    ) -> AsyncIterator[httpx.Response]:
        """Ask, and close the connection behind whatever came of it, unless it can be kept."""
        response = await self._ask(seat, call, scope.request_id)
        try:
            if response.status_code != httpx.codes.OK:
                raise await self._refusal(response)
            yield response
        finally:
            with suppress(httpx.TransportError):  # it is broken already
                await response.aclose()

    async def _ask(self, seat: Seat, call: ModelCall, request_id: str | None) -> httpx.Response:
        request = httpx.Request(
            "POST",
            f"{seat.url}{call.path}",
            headers=_HEADERS if request_id is None else {**_HEADERS, HEADER: request_id},
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


async def _next(lines: AsyncGenerator[bytes], seconds: float) -> bytes | None:
    try:
        async with asyncio.timeout(seconds):
            return await anext(lines, None)
    except httpx.TransportError as error:
        raise error_of_transport(error) from error
    except TimeoutError:
        raise ModelTimeout from None


async def _lines(response: httpx.Response) -> AsyncGenerator[bytes]:
    reader = LineReader()
    async for data in response.aiter_raw():
        for line in reader.feed(data):
            yield line
    for line in reader.rest():
        yield line
