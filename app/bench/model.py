"""A model server for simulated load: Ollama's wire, a known answer, a steady pace."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MODEL = "paced"
_CREATED_AT = "2026-01-01T00:00:00.000000Z"
_TAGS = {"models": [{"name": f"{MODEL}:latest", "model": f"{MODEL}:latest", "size": 1}]}


class PacedModel:
    """Answers each chat word by word. Use it as ``async with PacedModel(…) as model``.

    Args:
        answer: what is said to what the user said last.
        word_seconds: the pause before each word.
        sent: what a word becomes in the moment when it is sent.
        cut: called when a client is found to have gone before its answer ended.
    """

    def __init__(
        self,
        answer: Callable[[str], str],
        word_seconds: float,
        sent: Callable[[str], str] = str,
        cut: Callable[[], None] = lambda: None,
    ) -> None:
        self._answer = answer
        self._word_seconds = word_seconds
        self._sent = sent
        self._cut = cut
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - the server made one
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            # A client that goes away is all that can go wrong; uvloop has words of its own for it.
            with suppress(OSError, EOFError, RuntimeError, asyncio.CancelledError):
                while True:
                    await self._serve(reader, writer)
        finally:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path, body = await _request(reader)
        if path == "/api/chat":
            await self._chat(orjson.loads(body), reader, writer)
            return
        answer = orjson.dumps(_TAGS)
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(answer), answer)
        )
        await writer.drain()

    async def _chat(
        self, asked: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        questions = [each["content"] for each in asked["messages"] if each["role"] == "user"]
        self._begin(writer)
        for number, word in enumerate(self._answer(questions[-1]).split(" ")):
            await asyncio.sleep(self._word_seconds)
            if reader.at_eof():
                self._cut()
                raise ConnectionResetError
            said = self._sent(word)
            writer.write(line(f" {said}" if number else said))
            await writer.drain()
        self._end(writer)
        await writer.drain()

    def _begin(self, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
        )

    def _end(self, writer: asyncio.StreamWriter, **counts: int) -> None:
        writer.write(line("", done=True, **counts) + b"0\r\n\r\n")


async def _request(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(fields.get("content-length", "0")))
    return head[0].split(" ")[1], body


def line(content: str, *, done: bool = False, **counts: int) -> bytes:
    """One line of an answer, as a chunk; the last one says how many tokens there were."""
    said: dict[str, Any] = {
        "model": MODEL,
        "created_at": _CREATED_AT,
        "message": {"role": "assistant", "content": content},
        "done": done,
        **counts,
    }
    if done:
        said["done_reason"] = "stop"
    return _chunk(said)


def call_line(name: str, arguments: Mapping[str, Any]) -> bytes:
    """A line that calls a tool, as a chunk."""
    calls = [{"function": {"name": name, "arguments": arguments}}]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    said = {"model": MODEL, "created_at": _CREATED_AT, "message": message, "done": False}
    return _chunk(said)


def _chunk(said: Mapping[str, Any]) -> bytes:
    text = json.dumps(said).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(text), text)
