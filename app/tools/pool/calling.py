"""What is said over an open connection: calls, pages of lists, the wish to hear of changes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types
from mcp import MCPError
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    SubscriptionLost,
    ToolsListChanged,
    listen,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from app.request_id import META, current_request_id
from app.tools.pool.asking import Refused
from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.offered import Part
from app.tools.pool.wires import HttpWire
from app.tools.questions import Asked, CallQuestions, questions_of_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.tools.pool.leased import Progress
    from app.tools.pool.opening import Line
    from app.tools.pool.pages import Page

    R = TypeVar("R", bound=mcp_types.PaginatedResult)

MAX_ROUNDS = 8
"""How often a call is made again with replies to what it asked."""
LATER_SECONDS = 0.25
"""How long a server that wants to be asked again is left alone."""
_CHANGED: dict[type[object], Part] = {
    ToolsListChanged: Part.TOOLS,
    ResourcesListChanged: Part.RESOURCES,
    PromptsListChanged: Part.PROMPTS,
}


async def call_tool(
    line: Line,
    tool: str,
    arguments: dict[str, Any],
    meta: dict[str, Any],
    progress: Progress | None,
    let_in: Callable[[], None],
    server: str,
) -> mcp_types.CallToolResult:
    """Make a call; an error that the server answers with is a result.

    ``let_in`` is told once the server deals with it, though there is no result yet.

    Raises:
        Asked: the server has questions that are not answered yet.
        ToolServerUnavailable: there is no answer.
    """
    questions = questions_of_call.get()
    failed = failed_requests(line)
    try:
        with line.asking.during(questions):
            result = await _rounds(line, tool, arguments, meta, progress, let_in, questions)
    except MCPError as error:
        assert_answered(line, error, failed, server)
        result = _as_result(error)
    except (Refused, ValidationError, RuntimeError, ValueError):
        reason = line.wire.loss.reason
        lost = reason.result() if reason.done() else Reason.PROTOCOL
        raise ToolServerUnavailable(server, lost) from None
    if questions is not None and questions.open:
        raise Asked(questions.open)
    return result


async def _rounds(
    line: Line,
    tool: str,
    arguments: dict[str, Any],
    meta: dict[str, Any],
    progress: Progress | None,
    let_in: Callable[[], None],
    questions: CallQuestions | None,
) -> mcp_types.CallToolResult:
    """Call, and call again with replies, until there is a result."""
    responses: mcp_types.InputResponses | None = None
    state: str | None = None
    rounds = 0
    while True:
        result = await line.session.call_tool(
            tool,
            arguments,
            progress_callback=progress,  # type: ignore[arg-type] # awaited only
            meta=_with_request(meta) or None,  # type: ignore[arg-type]
            input_responses=responses,
            request_state=state,
            allow_input_required=True,
        )
        if isinstance(result, mcp_types.CallToolResult):
            return result
        let_in()
        state = result.request_state
        if result.input_requests:
            rounds += 1
            if rounds > MAX_ROUNDS:
                raise Refused
            responses = line.asking.responses(result.input_requests, questions)
        else:
            responses = None
            await asyncio.sleep(LATER_SECONDS)


def _with_request(meta: dict[str, Any]) -> dict[str, Any]:
    """Also name the request, so that a server's own log can be read beside ours.

    Not before: a call is known by what it was given, and this is the same for all of a run.
    """
    request_id = current_request_id()
    return meta if request_id is None else {**meta, META: request_id}


def failed_requests(line: Line) -> int:
    """How many requests over this connection were answered with a failure."""
    return line.wire.failed if isinstance(line.wire, HttpWire) else 0


def assert_answered(line: Line, error: MCPError, failed: int, server: str) -> None:
    """Tell an error that the server gave from one that stands for there being no answer.

    Raises:
        ToolServerUnavailable: there is none.
    """
    loss = line.wire.loss.reason
    if error.error.code == mcp_types.CONNECTION_CLOSED or loss.done():
        raise ToolServerUnavailable(server, loss.result() if loss.done() else Reason.EXITED)
    if isinstance(line.wire, HttpWire) and line.wire.failed > failed:
        raise ToolServerUnavailable(server, line.wire.failure or Reason.UNREACHABLE)


def _as_result(error: MCPError) -> mcp_types.CallToolResult:
    text = mcp_types.TextContent(text=error.error.message)
    return mcp_types.CallToolResult(content=[text], is_error=True)


def page_by(ask: Callable[..., Awaitable[R]]) -> Page[R]:
    """How to ask for a page of what a session's method lists."""

    async def page(cursor: str | None) -> R:
        params = None if cursor is None else mcp_types.PaginatedRequestParams(cursor=cursor)
        return await ask(params=params)

    return page


def offered_parts(line: Line) -> set[Part]:
    """What the server says that it can list."""
    offered = line.client.server_capabilities
    said = {} if offered is None else {part: getattr(offered, part) for part in Part}
    return {part for part, capability in said.items() if capability is not None}


async def watch_changes(line: Line, changed: Callable[..., None]) -> None:
    """Hear of what has changed from servers that tell only whoever asks for it.

    Once it is promised, all that it is promised for counts as changed: what was listed before may
    have become something else in between. Ends where the server does not offer that, or ends it.
    """
    offered = line.client.server_capabilities
    if line.client.protocol_version not in MODERN_PROTOCOL_VERSIONS or offered is None:
        return
    told = {part for part in offered_parts(line) if getattr(offered, part).list_changed}
    if not told:
        return
    hearing = listen(
        line.session,
        tools_list_changed=Part.TOOLS in told,
        resources_list_changed=Part.RESOURCES in told,
        prompts_list_changed=Part.PROMPTS in told,
    )
    try:
        async with hearing as events:
            changed(*told)
            async for event in events:
                if (part := _CHANGED.get(type(event))) is not None:
                    changed(part)
    except (MCPError, SubscriptionLost, TimeoutError, RuntimeError):
        return
