"""The one way to the model servers: an HTTP transport that knows what a whole answer is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator

import httpx

from app.models.connection import build_transport
from app.models.errors import ModelEmpty, ModelError, ModelStreamCut, ModelTimeout
from app.models.failures import error_of_response, error_of_transport
from app.models.lines import AnswerCheck, LineReader, only_loaded
from app.models.retry import attempts
from app.models.settings import ModelSettings

_ANSWERS = ("/api/chat", "/api/generate")
_LONGEST_ERROR_TEXT = 64 * 1024


class ModelTransport(httpx.AsyncBaseTransport):
    """Carries model calls. Whatever goes wrong with one, it raises a ``ModelError``.

    An answer is returned once its first line is there, so a call that failed until then can be
    made again unseen. After that, lines are passed on as they come.
    """

    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._wire = build_transport(settings.url)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, again where that may help, and return its answer."""
        await request.aread()
        # The lines are read here, so they must come as they are.
        request.headers["Accept-Encoding"] = "identity"
        async for attempt in attempts(self._settings.retry_seconds):
            with attempt:
                return await self._send(request)
        raise AssertionError("the last attempt returns or raises")

    async def aclose(self) -> None:
        """Close every connection."""
        await self._wire.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response = await self._open(request)
        try:
            if response.status_code != httpx.codes.OK:
                raise await self._refusal(response)  # noqa: TRY301 - the response is closed below
            if not request.url.path.endswith(_ANSWERS):
                return response
            stream = AnswerStream(response, self._settings)
            await stream.start()
        except BaseException:
            await response.aclose()
            raise
        return httpx.Response(response.status_code, headers=response.headers, stream=stream)

    async def _open(self, request: httpx.Request) -> httpx.Response:
        try:
            async with asyncio.timeout(self._settings.first_byte_seconds):
                return await self._wire.handle_async_request(request)
        except httpx.TransportError as error:
            raise error_of_transport(error) from error
        except TimeoutError:
            raise ModelTimeout from None

    async def _refusal(self, response: httpx.Response) -> ModelError:
        text = b""
        try:
            async with asyncio.timeout(self._settings.stall_seconds):
                async for data in response.aiter_raw():
                    text += data
                    if len(text) > _LONGEST_ERROR_TEXT:
                        break
        except (httpx.TransportError, TimeoutError):
            pass  # the status says enough
        return error_of_response(response.status_code, text.decode(errors="replace"))


class AnswerStream(httpx.AsyncByteStream):
    """An answer on its way: every line is checked before it is passed on."""

    def __init__(self, response: httpx.Response, settings: ModelSettings) -> None:
        self._response = response
        self._settings = settings
        self._check = AnswerCheck()
        self._lines = self._read()
        self._first = b""

    async def start(self) -> None:
        """Wait for the first line.

        Raises:
            ModelError: it does not come, or says that there is no answer.
        """
        line = await self._next(self._settings.first_byte_seconds)
        if line is None:
            raise ModelStreamCut
        if only_loaded(self._check.line(line)):
            raise ModelEmpty
        self._first = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the lines to the end.

        Raises:
            ModelError: the answer fails, stalls, or ends before it is done.
        """
        yield self._first + b"\n"
        while (line := await self._next(self._settings.stall_seconds)) is not None:
            self._check.line(line)
            yield line + b"\n"
        self._check.end()

    async def aclose(self) -> None:
        """Close the answer; if it is not whole, the connection with it, so that the model stops."""
        await self._lines.aclose()
        await self._response.aclose()

    async def _next(self, seconds: float) -> bytes | None:
        try:
            async with asyncio.timeout(seconds):
                return await anext(self._lines, None)
        except httpx.TransportError as error:
            raise error_of_transport(error) from error
        except TimeoutError:
            raise ModelTimeout from None

    async def _read(self) -> AsyncGenerator[bytes]:
        reader = LineReader()
        async for data in self._response.aiter_raw():
            for line in reader.feed(data):
                yield line
        for line in reader.rest():
            yield line
