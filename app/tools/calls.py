"""One call of a tool, as a task of its own: bounded in time, and a message whatever happens.

A call that only reads may be cut off. One that may change the world is never left half done: it is
finished, within its time, though the run be stopped or its task be cancelled.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, Self

import structlog
from langchain_core.messages import ToolCall, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import ValidationError

from app.stopping import end_task, until_done_or_cancelled
from app.telemetry.spans import Facts, call_span
from app.tools.outcomes import (
    METADATA,
    NOBODY_KNOWS,
    UNKNOWN,
    Outcome,
    error_result,
    result_message,
)
from app.tools.refusal import ToolRefusal
from app.tools.waiting import InDoubt, MustWait, NotApproved

if TYPE_CHECKING:
    from app.stopping import RunStop
    from app.tools.approval.ruling import Policy
    from app.tools.approval.word import PersonsWord

log = structlog.get_logger(__name__)

END_SECONDS = 2.0
"""How long a call that was cut off may take to clean up, before it is left to itself."""

STOPPED = "This call was stopped before it had a result."
NOT_BEGUN = "This call was stopped before it began."
TIMED_OUT = "The tool did not answer in time."
TIMED_OUT_CHANGING = "The tool did not answer in time. It may have had an effect."
FAILED = "The tool failed."


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool that an agent may call."""

    tool: BaseTool
    read_only: bool
    """Whether its calls change nothing, so that one may be cut off at any moment."""
    timeout_seconds: float
    server: str | None = None
    """Whose tool it is; None: it comes with the service, or with a graph."""
    own_name: str | None = None
    """What its server calls it, if that is something else."""
    policy: Policy | None = None
    """When its person is asked before a call; None: never."""
    word: PersonsWord | None = None
    """What its person has said of its server, as it is known now; None: it is no server's."""

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

    @property
    def grant_version(self) -> int | None:
        """Of the credential that its calls are made with, as the person gave it; None: nobody's."""
        return None if self.word is None else self.word.grant_version


class EarlierCalls(Protocol):
    """Knows of calls that were made before, of tools that may not be there any more."""

    async def result_of(self, call: ToolCall) -> ToolMessage | None:
        """What came of the call that is about to be made again; None: nothing is known of it.

        Raises:
            InDoubt: it was begun, and nobody knows what came of it.
        """
        ...


async def run_call(
    call: ToolCall,
    tools: Mapping[str, AgentTool],
    stop: RunStop | None,
    slots: asyncio.Semaphore | None = None,
    earlier: EarlierCalls | None = None,
) -> ToolMessage:
    """Make the call and return its result; what goes wrong is a result too, of status ``error``.

    If the task that waits here is cancelled, a call that may change the world is waited for all
    the same. ``slots`` bound how many calls are made at once.

    Raises:
        MustWait: its person has to say something first. Of a run that is being stopped nobody is
            asked whether to make a call, nor what came of one.
    """
    tool = tools.get(call["name"])
    try:
        if tool is None:
            known = None if earlier is None else await earlier.result_of(call)
            return (
                error_result(call, UNKNOWN) if known is None else result_message(call, None, known)
            )
        async with _turn(slots, stop) as is_given:
            if not is_given:
                return await _not_begun(call, tool, earlier)
            with call_span("tool call", MustWait) as facts:
                return await _make(call, tool, stop, facts)
    except InDoubt:
        if not _is_stopped(stop):
            raise
        return error_result(call, NOBODY_KNOWS, tool, Outcome.LOST)
    except NotApproved:
        if not _is_stopped(stop):
            raise
        return error_result(call, NOT_BEGUN, tool, Outcome.STOPPED)


async def _not_begun(call: ToolCall, tool: AgentTool, earlier: EarlierCalls | None) -> ToolMessage:
    """The result of a call that there is no time for; of one that was made before, what came of it.

    Raises:
        InDoubt: it was begun, and nobody knows what came of it.
    """
    if earlier is not None and tool.server is not None:
        known = await earlier.result_of(call)
        if known is not None:
            return result_message(call, tool, known)
    return error_result(call, NOT_BEGUN, tool, Outcome.STOPPED)


def _is_stopped(stop: RunStop | None) -> bool:
    return stop is not None and stop.cancelled.is_set()


@asynccontextmanager
async def _turn(slots: asyncio.Semaphore | None, stop: RunStop | None) -> AsyncIterator[bool]:
    """One of the calls that may be made at once; False where the run is to stop before."""
    if slots is None:
        yield not _is_stopped(stop)
        return
    taking = asyncio.create_task(slots.acquire())
    try:
        await until_done_or_cancelled(taking, stop)
        yield taking.done() and not _is_stopped(stop)
    finally:
        if await end_task(taking) is None:
            slots.release()


async def _make(call: ToolCall, tool: AgentTool, stop: RunStop | None, facts: Facts) -> ToolMessage:
    if tool.server is None:  # another's names may be a person's own choice
        facts.say({"stoa.tool": tool.name})
    request = {**call, "id": call["id"] or "", "type": "tool_call"}
    begun = monotonic()
    task = asyncio.create_task(tool.tool.ainvoke(request), name=f"tool {tool.name}")
    if tool.read_only:
        message = await _read(call, tool, task, stop)
    else:
        with nullcontext() if stop is None else stop.uninterrupted(tool.name):
            message = await _change(call, tool, task)
    known = message.response_metadata[METADATA]
    known["seconds"] = round(monotonic() - begun, 3)
    facts.say({"stoa.outcome": str(known["outcome"])})
    return message


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
    if _is_stopped(stop):
        return error_result(call, STOPPED, tool, Outcome.STOPPED)
    return error_result(call, TIMED_OUT, tool, Outcome.TIMEOUT)


async def _change(call: ToolCall, tool: AgentTool, task: asyncio.Task[Any]) -> ToolMessage:
    """Make a call that may change the world.

    Raises:
        InDoubt: its time is over, and whoever keeps a record may know of it.
    """
    cancelled = await _finish(task, tool.timeout_seconds)
    was_done = task.done()
    error = await end_task(task, END_SECONDS)
    if cancelled is not None:
        raise cancelled
    if was_done or error is None:
        return _outcome(call, tool, task, error)
    if tool.server is not None:
        raise InDoubt({"why": "timeout"}, tool.server, tool.own_name or tool.name)
    return error_result(call, TIMED_OUT_CHANGING, tool, Outcome.LOST)


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
    """What a call that has ended by itself came to.

    Raises:
        MustWait: it ended with something that its person has to say first.
    """
    if error is None:
        return result_message(call, tool, task.result())
    if isinstance(error, MustWait):
        raise error
    if isinstance(error, ToolRefusal):
        return error_result(call, str(error), tool)
    if isinstance(error, ValidationError) and _is_about_arguments(error, tool.tool):
        wrong = (f"`{'.'.join(map(str, each['loc']))}` ({each['type']})" for each in error.errors())
        text = f"The arguments do not fit the tool: {', '.join(wrong)}."
        return error_result(call, text, tool)
    # The name of a tool of a server may be a person's own choice.
    named = {"tool": tool.name} if tool.server is None else {}
    log.warning("tool failed", error=type(error).__name__, **named)
    return error_result(call, FAILED, tool)


def _is_about_arguments(error: ValidationError, tool: BaseTool) -> bool:
    schema = tool.args_schema
    return isinstance(schema, type) and error.title == schema.__name__
