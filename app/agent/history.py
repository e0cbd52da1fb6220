"""A conversation as a model's API accepts it: every tool call answered, right after it was made.

Stops, crashes and clients leave other histories behind. Pure functions; the stored messages stay
as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from uuid import NAMESPACE_OID, uuid5

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage

from app.agent.answer import INCOMPLETE

NO_RESULT = "This call was interrupted before it had a result. It may have had an effect."
NOT_MADE = "The person did not say whether this call may be made. It was not made."


def answered(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The conversation with each tool call's result right after the message that made the call.

    A call without a result gets an error for one. Results of no call, and second ones, are left
    out: a model's API refuses them. An answer that was broken off and gone on with is one message.
    """
    exchanges = _exchanges(messages)
    return _whole([message for exchange in exchanges for message in exchange.in_order()])


def closing_messages(
    messages: Sequence[BaseMessage], not_made: Collection[str] = ()
) -> list[ToolMessage]:
    """An error result for each tool call that has none, in the order of the calls.

    ``not_made`` are the ids of those that waited for an approval until now. The same call gets the
    same message id each time, so repairing twice adds nothing.
    """
    return [
        exchange.closing(call_id, NOT_MADE if call_id in not_made else NO_RESULT)
        for exchange in _exchanges(messages)
        for call_id in exchange.calls
        if call_id not in exchange.results
    ]


def _whole(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Join what was said of one answer with pauses between: some take one such message at most."""
    joined: list[BaseMessage] = []
    for message in messages:
        before = joined[-1] if joined else None
        if (
            isinstance(before, AIMessage)
            and isinstance(message, AIMessage)
            and INCOMPLETE in before.response_metadata
        ):
            joined[-1] = message.model_copy(update={"content": before.text + message.text})
        else:
            joined.append(message)
    return joined


@dataclass(slots=True)
class _Exchange:
    """A message, the tool calls that it makes, by id, and their results."""

    message: BaseMessage
    calls: dict[str, ToolCall]
    results: dict[str, ToolMessage] = field(default_factory=dict)

    def in_order(self) -> list[BaseMessage]:
        results = (self.results.get(call_id) or self.closing(call_id) for call_id in self.calls)
        return [self.message, *results]

    def closing(self, call_id: str, text: str = NO_RESULT) -> ToolMessage:
        return ToolMessage(
            text,
            id=str(uuid5(NAMESPACE_OID, f"{self.message.id} {call_id}")),
            tool_call_id=call_id,
            name=self.calls[call_id]["name"],
            status="error",
        )


def _exchanges(messages: Sequence[BaseMessage]) -> list[_Exchange]:
    """Group results with their calls. An id that is used again belongs to the newer call."""
    exchanges: list[_Exchange] = []
    waiting: dict[str, _Exchange] = {}
    for message in messages:
        if isinstance(message, ToolMessage):
            exchange = waiting.pop(message.tool_call_id, None)
            if exchange is not None:
                exchange.results[message.tool_call_id] = message
            continue
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        exchange = _Exchange(message, {call["id"] or "": call for call in calls})
        exchanges.append(exchange)
        waiting |= dict.fromkeys(exchange.calls, exchange)
    return exchanges
