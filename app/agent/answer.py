"""One answer of the model: whole, or as far as it came when it was stopped or failed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, AIMessageChunk

from app.models.errors import error_by_code
from app.models.failures import describe_model_failure
from app.stopping import end_task, until_done_or_cancelled
from app.tools.texts import with_numbers_kept

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_core.messages import BaseMessage, ToolCall
    from langchain_core.runnables import Runnable

    from app.stopping import RunStop

INCOMPLETE = "stoa_incomplete"
"""In a message's ``response_metadata``: the code of what cut it off."""
STOPPED = "stopped"
"""The code of an answer that was cut off on request."""
MOST_CALLS = 100
"""Of tools in one answer: the person may be asked about each. Those beyond are not the model's."""


async def stream_answer(
    model: Runnable[Any, AIMessage],
    prompt: list[BaseMessage],
    stop: RunStop | None,
) -> AIMessage | None:
    """Ask the model, and listen until it has ended or the run is to stop now.

    When it returns, the connection to the model is closed. A part of an answer is returned under
    the id that its chunks were streamed with, marked, and without tool calls; None, if the run was
    stopped before the first word. If the model fails after its first word, that is left with
    ``stop``, for the run to end with once the part is stored.
    """
    heard = _Heard()
    if stop is not None and stop.cancelled.is_set():
        return None
    listening = asyncio.create_task(heard.listen(model.astream(prompt)))
    try:
        await until_done_or_cancelled(listening, stop)
    finally:
        error = await end_task(listening)
    if error is None:
        return heard.whole()
    if stop is None:
        raise error
    if stop.cancelled.is_set():
        return heard.part(STOPPED)
    return _part_of_failed(heard, error, stop)


def _part_of_failed(heard: _Heard, error: BaseException, stop: RunStop) -> AIMessage:
    failure = describe_model_failure(error)
    part = heard.part(failure.code) if failure is not None else None
    if failure is None or part is None:
        raise error
    stop.fail(failure)
    return part


class _Heard:
    """What the model has said so far."""

    def __init__(self) -> None:
        self._answer: AIMessageChunk | None = None

    async def listen(self, chunks: AsyncIterator[AIMessage]) -> None:
        async for chunk in chunks:
            self._answer = chunk if self._answer is None else self._answer + chunk  # type: ignore[assignment]

    def whole(self) -> AIMessage:
        """The answer, which is complete."""
        if self._answer is None:
            raise error_by_code("model_stream_cut")
        return self._message(self._answer)

    def part(self, code: str) -> AIMessage | None:
        """What came before it was cut off; None without a word."""
        if self._answer is None or not self._answer.text:
            return None
        part = self._message(self._answer)
        part.tool_calls = []
        part.response_metadata[INCOMPLETE] = code
        return part

    @staticmethod
    def _message(answer: AIMessageChunk) -> AIMessage:
        return AIMessage(
            content=answer.content,
            id=answer.id,
            tool_calls=[_kept(call) for call in answer.tool_calls[:MOST_CALLS]],
            additional_kwargs=answer.additional_kwargs,
            response_metadata=dict(answer.response_metadata),
            usage_metadata=answer.usage_metadata,
        )


def _kept(call: ToolCall) -> ToolCall:
    """A call as it is shown, stored, compared and made: the same at any time."""
    return {**call, "args": with_numbers_kept(call["args"])}
