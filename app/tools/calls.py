"""One call of a tool, as a task of its own: bounded in time, and a message whatever happens.

A call that only reads may be cut off. One that may change the world is never left half done: it is
finished, within its time, though the run be stopped or its task be cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import uuid4

import structlog
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ValidationError

from app.stopping import end_task, until_done_or_cancelled

if TYPE_CHECKING:
    from app.stopping import RunStop

log = structlog.get_logger(__name__)

END_SECONDS = 2.0
"""How long a call that was cut off may take to clean up, before it is left to itself."""

UNKNOWN = "There is no tool of this name."
STOPPED = "This call was stopped before it had a result."
NOT_BEGUN = "This call was stopped before it began."
TIMED_OUT = "The tool did not answer in time."
TIMED_OUT_CHANGING = "The tool did not answer in time. It may have had an effect."
FAILED = "The tool failed."
UNREADABLE = "The tool's answer could not be read."


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that an agent may call."""

    tool: BaseTool
    read_only: bool
    """Whether its calls change nothing, so that one may be cut off at any moment."""
    timeout_seconds: float

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Coroutine[Any, Any, Any]],
        *,
        read_only: bool,
        timeout_seconds: float,
    ) -> Self:
        """An asynchronous function as a tool; name, description and schema are its own."""
        tool = StructuredTool.from_function(coroutine=function)
        return cls(tool, read_only=read_only, timeout_seconds=timeout_seconds)

    @property
    def name(self) -> str:
        """What the model calls it by."""
        return self.tool.name


async def run_call(
    call: ToolCall, tools: Mapping[str, AgentTool], stop: RunStop | None
) -> ToolMessage:
    """Make the call and return its result; what goes wrong is a result too, of status ``error``.

    If the task that waits here is cancelled, a call that may change the world is waited for all
    the same.
    """
    tool = tools.get(call["name"])
    if tool is None:
        return _error(call, UNKNOWN)
    if stop is not None and stop.cancelled.is_set():
        return _error(call, NOT_BEGUN)
    request = {**call, "id": call["id"] or "", "type": "tool_call"}
    task = asyncio.create_task(tool.tool.ainvoke(request), name=f"tool {tool.name}")
    if tool.read_only:
        return await _read(call, tool, task, stop)
    with nullcontext() if stop is None else stop.uninterrupted(tool.name):
        return await _change(call, tool, task)


async def _read(
    call: ToolCall, tool: AgentTool, task: asyncio.Task[Any], stop: RunStop | None
) -> ToolMessage:
    try:
        await until_done_or_cancelled(task, stop, tool.timeout_seconds)
    finally:
        was_done = task.done()
        error = await end_task(task, END_SECONDS)
    if was_done or error is None:
        return _outcome(call, tool, task, error)
    is_stopped = stop is not None and stop.cancelled.is_set()
    return _error(call, STOPPED if is_stopped else TIMED_OUT)


async def _change(call: ToolCall, tool: AgentTool, task: asyncio.Task[Any]) -> ToolMessage:
    cancelled = await _finish(task, tool.timeout_seconds)
    was_done = task.done()
    error = await end_task(task, END_SECONDS)
    if cancelled is not None:
        raise cancelled
    if was_done or error is None:
        return _outcome(call, tool, task, error)
    return _error(call, TIMED_OUT_CHANGING)


async def _finish(task: asyncio.Task[Any], seconds: float) -> asyncio.CancelledError | None:
    """Wait for a task, however often the one that waits is cancelled; return the last of that."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    cancelled = None
    while not task.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait({task}, timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


def _outcome(
    call: ToolCall, tool: AgentTool, task: asyncio.Task[Any], error: BaseException | None
) -> ToolMessage:
    """What a call that has ended by itself came to."""
    if error is None:
        return _result(call, task.result())
    if isinstance(error, ValidationError) and _is_about_arguments(error, tool.tool):
        wrong = (f"`{'.'.join(map(str, each['loc']))}` ({each['type']})" for each in error.errors())
        return _error(call, f"The arguments do not fit the tool: {', '.join(wrong)}.")
    log.warning("tool failed", tool=tool.name, error=type(error).__name__)
    return _error(call, FAILED)


def _is_about_arguments(error: ValidationError, tool: BaseTool) -> bool:
    schema = tool.args_schema
    return isinstance(schema, type) and error.title == schema.__name__


def _result(call: ToolCall, answer: object) -> ToolMessage:
    """The tool's answer under an id of its own, so that it is the same in every copy.

    What a tool leaves beside its content stays out: it need not be storable.
    """
    if not isinstance(answer, ToolMessage):
        return _error(call, UNREADABLE)
    return _message(call, answer.content, answer.status)


def _error(call: ToolCall, text: str) -> ToolMessage:
    return _message(call, text, "error")


def _message(call: ToolCall, content: Any, status: Any) -> ToolMessage:  # noqa: ANN401
    return ToolMessage(
        content,
        id=str(uuid4()),
        tool_call_id=call["id"] or "",
        name=call["name"],
        status=status,
    )
