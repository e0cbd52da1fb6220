"""The way to Postgres, as a network is: it can be cut with a word, or without one."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_PIECE = 65_536


class Wire:
    """Passes TCP connections on to an address. Use it as ``async with Wire(address) as wire``.

    Args:
        address: says where to; asked for each connection, since servers may move.
    """

    def __init__(self, address: Callable[[], tuple[str, int]]) -> None:
        self._address = address
        self._passing = asyncio.Event()
        self._passing.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Take connections, at :attr:`port`."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Take none any more, and break those there are."""
        if self._server is not None:
            self._server.close()
        self.drop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def silence(self) -> None:
        """Pass nothing on, and say nothing: neither end learns of it."""
        self._passing.clear()

    def restore(self) -> None:
        """Pass on again; what was sent meanwhile arrives now."""
        self._passing.set()

    def drop(self) -> None:
        """Break every connection; both ends learn of it at once."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - the server made one
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        with suppress(OSError, asyncio.CancelledError):
            await self._connect(reader, writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._passing.wait()
            there_reader, there = await asyncio.open_connection(*self._address())
            self._writers.add(there)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass(reader, there))
                    both.create_task(self._pass(there_reader, writer))
            finally:
                self._writers.discard(there)
                there.transport.abort()
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, RuntimeError):  # uvloop's word for a closed connection
            while piece := await reader.read(_PIECE):
                await self._passing.wait()
                writer.write(piece)
                await writer.drain()
        await self._passing.wait()
        with suppress(OSError, RuntimeError):
            writer.write_eof()
