"""An answer on its way: every line is checked and counted before it is passed on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from app.models.errors import ModelEmpty, ModelError, ModelStreamCut, ModelTimeout
from app.models.failures import error_of_transport, failure_of_pool
from app.models.lines import LineReader, only_loaded

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from app.models.lines import AnswerCheck, EmbeddingCheck
    from app.models.settings import ModelTiming
    from app.models.usage import TokenCount, Usage
    from tenancy.scheduler.seats import PoolFailure


class AnswerStream(httpx.AsyncByteStream):
    """Reads one answer. However it ends, whoever asked to be told is, once."""

    def __init__(
        self,
        response: httpx.Response,
        timing: ModelTiming,
        check: AnswerCheck | EmbeddingCheck,
        count: TokenCount,
    ) -> None:
        self._response = response
        self._timing = timing
        self._check = check
        self._count = count
        self.failure: PoolFailure | None = None
        """What was wrong with the pool, if that is why it ended."""
        self._ended: Callable[[Usage, PoolFailure | None], None] | None = None
        self._is_closed = False
        self._lines = self._read()
        self._first = b""
        self._reader: asyncio.Task[object] | None = None
        self._closing: asyncio.Task[None] | None = None

    def when_ended(self, ended: Callable[[Usage, PoolFailure | None], None]) -> None:
        """Have this called once it has ended: with what was used, and what was wrong."""
        self._ended = ended

    async def start(self) -> None:
        """Wait for the first line.

        Raises:
            ModelError: it does not come, or says that there is no answer.
        """
        line = await self._next(self._timing.first_byte_seconds)
        if line is None:
            raise ModelStreamCut
        part = self._take(line)
        if only_loaded(part):
            raise ModelEmpty
        self._first = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the lines to the end.

        Raises:
            ModelError: the answer fails, stalls, or ends before it is done.
        """
        yield self._first + b"\n"
        try:
            while (line := await self._next(self._timing.stall_seconds)) is not None:
                self._take(line)
                yield line + b"\n"
            self._check.end()
        except ModelError as error:
            self.failure = failure_of_pool(error)
            raise

    async def aclose(self) -> None:
        """Close the answer; if it is not whole, the connection with it, so that the model stops."""
        try:
            await self._lines.aclose()
            await self._response.aclose()
        finally:
            self._end()

    def abort(self) -> None:
        """Close the answer soon; a task that waits for a line of it is cancelled."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._abort())

    async def _abort(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait({self._reader})
        await self.aclose()

    def _take(self, line: bytes) -> dict[str, object]:
        part = self._check.line(line)
        self._count.line(part)
        return part

    def _end(self) -> None:
        self._is_closed = True
        if self._ended is not None:
            ended, self._ended = self._ended, None
            ended(self._count.total(), self.failure)

    async def _next(self, seconds: float) -> bytes | None:
        if self._is_closed:
            raise ModelStreamCut
        self._reader = asyncio.current_task()
        try:
            async with asyncio.timeout(seconds):
                return await anext(self._lines, None)
        except httpx.TransportError as error:
            raise error_of_transport(error) from error
        except TimeoutError:
            raise ModelTimeout from None
        finally:
            self._reader = None

    async def _read(self) -> AsyncGenerator[bytes]:
        reader = LineReader()
        async for data in self._response.aiter_raw():
            for line in reader.feed(data):
                yield line
        for line in reader.rest():
            yield line
