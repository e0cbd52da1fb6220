"""The tools of the tickets' server."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final, NoReturn

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from app.tools.examples.tickets.desk import Desk, Refused, Ticket
from app.tools.examples.tickets.once import MOST_KEY_CHARACTERS, Call, KeyOfAnotherCall

KEY: Final = "stoa.dev/idempotency-key"
"""Under which name of a request's ``_meta`` the key comes."""
TTL: Final = "stoa.dev/idempotency-ttl"
"""Under which name of a tool's ``_meta`` stands for how many seconds a key is known."""

NOT_REPLAY_SAFE = (
    "This call carried no idempotency key, so it is not replay-safe: made again, it acts again."
)
ANOTHER_CALL = "This idempotency key was used for another call. Nothing was done."
NO_KEY = f"An idempotency key is a text of 1 to {MOST_KEY_CHARACTERS} characters. Nothing was done."
MOST_LISTED = 50

Title = Annotated[str, Field(min_length=1, max_length=200)]
Note = Annotated[str, Field(max_length=10_000)]
Number = Annotated[int, Field(ge=1, le=2**53)]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

Act = Callable[[sqlite3.Connection], Ticket]
Told = Context[Any, Any]


def tickets_server(desk: Desk) -> MCPServer[Any]:
    """The server of a desk's tickets."""
    server: MCPServer[Any] = MCPServer(
        "tickets",
        instructions=(
            "Tickets: create, update and close them, read one or list them."
            f" A call that changes anything and carries `{KEY}` in its `_meta` may be repeated"
            f" under that key for {desk.ttl_seconds:g} seconds: it is done once, and each time"
            " answered what it was the first time."
        ),
        log_level="ERROR",
    )
    promise = {TTL: desk.ttl_seconds}

    @server.tool(annotations=CHANGES, meta=promise)
    def create(title: Title, context: Told, note: Note = "") -> CallToolResult:
        """Open a ticket; its number is in the answer."""
        arguments = {"title": title, "note": note}
        act: Act = partial(desk.create, title=title, note=note)
        return _changed(desk, context, "create", arguments, act)

    @server.tool(annotations=CHANGES, meta=promise)
    def update(number: Number, note: Note, context: Told) -> CallToolResult:
        """Add a note to an open ticket."""
        act: Act = partial(desk.update, number=number, note=note)
        return _changed(desk, context, "update", {"number": number, "note": note}, act)

    @server.tool(annotations=CHANGES, meta=promise)
    def close(number: Number, context: Told, note: Note = "") -> CallToolResult:
        """Close an open ticket, for good."""
        act: Act = partial(desk.close, number=number, note=note)
        return _changed(desk, context, "close", {"number": number, "note": note}, act)

    @server.tool(annotations=READS, structured_output=False)
    def get(number: Number) -> str:
        """Read a ticket with its history."""
        try:
            return desk.read(partial(desk.ticket, number=number))
        except Refused as refused:
            raise ToolError(str(refused)) from None

    @server.tool(annotations=READS, structured_output=False, name="list")
    def list_tickets() -> str:
        """List the newest tickets."""
        return desk.read(partial(desk.tickets, most=MOST_LISTED))

    return server


def _changed(
    desk: Desk, context: Told, tool: str, arguments: dict[str, Any], act: Act
) -> CallToolResult:
    """What comes of a call that changes something: once, where it has a key."""
    meta: dict[str, Any] = dict(context.request_context.meta or {})
    key = meta.get(KEY)
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= MOST_KEY_CHARACTERS):
        return _said(NO_KEY, is_error=True)
    try:
        if key is None:
            return _parsed(desk.unguarded(lambda db: _result(db, act, NOT_REPLAY_SAFE)))
        return _parsed(desk.once(Call(key, tool, arguments), lambda db: _result(db, act)))
    except KeyOfAnotherCall:
        return _said(ANOTHER_CALL, is_error=True)
    except sqlite3.Error as error:
        _fall_silent(error)


def _result(db: sqlite3.Connection, act: Act, *remarks: str) -> str:
    """What came of it as it is kept: the whole result, refusals too."""
    try:
        ticket = act(db)
    except Refused as refused:
        return _said(str(refused), *remarks, is_error=True).model_dump_json(
            by_alias=True, exclude_none=True
        )
    result = _said(json.dumps(ticket, ensure_ascii=False), *remarks)
    return result.model_dump_json(by_alias=True, exclude_none=True)


def _said(*texts: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text) for text in texts], is_error=is_error)


def _parsed(kept: str) -> CallToolResult:
    return CallToolResult.model_validate_json(kept)


def _fall_silent(error: sqlite3.Error) -> NoReturn:
    """End without an answer.

    An error would say that nothing was done, and that is not known: the file that would tell
    cannot be read. Without an answer the call is in doubt, and asked again under its key.
    """
    sys.stderr.write(f"the tickets' file cannot be used: {error}\n")
    sys.stderr.flush()
    os._exit(1)
