"""The two ways to a server, as transports of fastmcp's ``Client``; each tells of its end."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
import mcp_types
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from fastmcp.client.transports.http import StreamableHttpTransport
from mcp import ClientSession
from mcp.shared.message import SessionMessage

from app.tools.pool.failures import UNAUTHORIZED, Reason, reason_of_status
from app.tools.pool.http import MAX_ANSWER_BYTES, Answers, ClientFactory
from app.tools.pool.pacing import Nodes, PacedMessages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client.session import ElicitationFnT
    from mcp.shared._httpx_utils import McpHttpClientFactory
    from mcp.shared._stream_protocols import ReadStream, WriteStream

    from app.tools.servers import Credential, HttpTransport, McpServer
    from app.tools.stdio.child import Child

MAX_GARBAGE = 100
"""Lines in a row that are no messages, after which a server does not speak the protocol."""

_NOT_FOUND = 404
_LISTS = frozenset({"resources/list", "prompts/list"})
_READS = frozenset({"resources/read", "prompts/get"})


class BoundedSession(ClientSession):
    """A session that runs none of the server's patterns, and hears it at a bounded pace.

    The library would check results against the schema that the same server gives for them. That
    protects nobody from the server, and an expression in it can keep the whole process busy.
    """

    def __init__(
        self,
        read_stream: ReadStream[SessionMessage | Exception],
        write_stream: WriteStream[SessionMessage],
        **others: Any,  # noqa: ANN401 - the library's own
    ) -> None:
        super().__init__(PacedMessages(read_stream), write_stream, **others)

    async def validate_tool_result(self, name: str, result: mcp_types.CallToolResult) -> None:
        """Take the result as it is."""


class Loss:
    """That a connection is of no use any more, and why: the first reason stays."""

    def __init__(self) -> None:
        self.reason: asyncio.Future[Reason] = asyncio.get_running_loop().create_future()

    def settle(self, reason: Reason) -> None:
        """It is lost."""
        if not self.reason.done():
            self.reason.set_result(reason)


class StdioWire(ClientTransport):
    """To a child, one message a line. The child is ended by whoever started it."""

    def __init__(self, child: Child, elicit: ElicitationFnT) -> None:
        self._child = child
        self._elicit = elicit
        self.loss = Loss()
        child.exited.add_done_callback(lambda _: self.loss.settle(Reason.EXITED))

    def turned_away(self, _meta: Mapping[str, Any]) -> bool:
        """Nobody has to prove anything to a child."""
        return False

    @asynccontextmanager
    async def connect_session(
        self,
        *,
        transport_options: TransportOptions | None = None,  # noqa: ARG002 - has one kind of session
        **session_kwargs: Any,  # noqa: ANN401 - the library's own
    ) -> AsyncIterator[ClientSession]:
        """A session over the child's pipes."""
        heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, said = anyio.create_memory_object_stream[SessionMessage](0)
        async with heard, read, write, said, anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, heard)
            tasks.start_soon(self._speak, said)
            try:
                async with BoundedSession(
                    read, write, **_ours(session_kwargs, self._elicit)
                ) as session:
                    yield session
            finally:
                tasks.cancel_scope.cancel()

    async def _listen(self, heard: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        reason = await self._hear(heard)
        self.loss.settle(reason)
        await heard.aclose()

    async def _hear(self, heard: MemoryObjectSendStream[SessionMessage | Exception]) -> Reason:
        """Hand on what it says until it says no more; why that is."""
        output = self._child.process.stdout
        garbage = 0
        while output is not None and garbage < MAX_GARBAGE:
            try:
                line = await output.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return Reason.EXITED
            except (asyncio.LimitOverrunError, OSError):
                return Reason.PROTOCOL
            if Nodes().too_many(line):
                return Reason.PROTOCOL
            try:
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:  # people print things
                garbage += 1
                continue
            garbage = 0
            try:
                await heard.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return Reason.CLOSED
        return Reason.PROTOCOL

    async def _speak(self, said: MemoryObjectReceiveStream[SessionMessage]) -> None:
        pipe = self._child.process.stdin
        async for each in said:
            if pipe is None:
                return
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                pipe.write(text.encode() + b"\n")
                await pipe.drain()
            except (OSError, RuntimeError):  # the other end is closed, or ours
                self.loss.settle(Reason.EXITED)
                return


class HttpWire(StreamableHttpTransport):
    """To an address, by streamable HTTP."""

    def __init__(
        self,
        server: McpServer,
        transport: HttpTransport,
        credential: Credential,
        make: ClientFactory,
        elicit: ElicitationFnT,
    ) -> None:
        headers = {**transport.headers, **credential.headers}
        answers = Answers(self._failed, lambda: self.loss.settle(Reason.PROTOCOL))

        def client(**_: object) -> httpx2.AsyncClient:
            return answers.client(make, headers)

        super().__init__(
            transport.url,
            httpx_client_factory=cast("McpHttpClientFactory", client),
            max_sse_event_size=MAX_ANSWER_BYTES,
        )
        self._server = server
        self._elicit = elicit
        self.loss = Loss()
        self.failed = 0
        """How many requests were answered with a failure."""
        self.failure: Reason | None = None
        """What the last one meant."""
        self._turned_away: list[Mapping[str, Any]] = []

    @asynccontextmanager
    async def connect_session(
        self,
        *,
        transport_options: TransportOptions | None = None,  # noqa: ARG002 - has one kind of session
        **session_kwargs: Any,  # noqa: ANN401 - the library's own
    ) -> AsyncIterator[ClientSession]:
        """A session at the address; an error of the network ends it."""
        options = TransportOptions(session_class=BoundedSession)
        try:
            async with super().connect_session(
                transport_options=options, **_ours(session_kwargs, self._elicit)
            ) as session:
                yield session
        finally:
            self.loss.settle(self.failure or Reason.UNREACHABLE)

    def turned_away(self, meta: Mapping[str, Any]) -> bool:
        """Whether the request with this ``_meta`` was not let in, whatever became of others."""
        return bool(meta) and any(meta.items() <= each.items() for each in self._turned_away)

    def _failed(self, response: httpx2.Response) -> None:
        """A credential that is refused, or a forgotten session, ends the connection.

        Other failures belong to their request: a server of an older protocol answers the question
        for a newer one so. So does every failure of what is asked for beside tools, since somebody
        may be let call these and read nothing.
        """
        forgotten = response.status_code == _NOT_FOUND and self.get_session_id() is not None
        asked = _asked(response.request)
        if not forgotten and (
            asked.get("method") in _LISTS
            or (asked.get("method") in _READS and response.status_code != UNAUTHORIZED)
        ):
            return
        self.failed += 1
        self.failure = reason_of_status(response.status_code, self._server)
        if response.status_code == UNAUTHORIZED:
            self._turned_away.append(_meta_of(asked))
        if forgotten or self.failure is not Reason.UNREACHABLE:
            self.loss.settle(self.failure)


def _asked(request: httpx2.Request) -> Mapping[str, Any]:
    """The message that was sent; empty where none was."""
    try:
        message = json.loads(request.content)
    except (httpx2.RequestNotRead, ValueError):
        return {}
    return message if isinstance(message, dict) else {}


def _meta_of(asked: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ``_meta`` of what was asked; empty where there is none."""
    try:
        meta = asked["params"]["_meta"]
    except (LookupError, TypeError):
        return {}
    return meta if isinstance(meta, dict) else {}


def _ours(given: dict[str, Any], elicit: ElicitationFnT) -> Any:  # noqa: ANN401 - as given
    """The session's parameters: questions are ours, and servers need not tell what they log."""
    return {**given, "elicitation_callback": elicit, "log_level": None}
