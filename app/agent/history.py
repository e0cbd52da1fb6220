"""What a conversation's history must look like for a model to take it."""

from __future__ import annotations

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

INTERRUPTED = "This call was interrupted before it had a result."


def closing_messages(messages: list[BaseMessage]) -> list[ToolMessage]:
    """An error result for each tool call that has none, in the order of the calls."""
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    return [
        ToolMessage(INTERRUPTED, tool_call_id=call["id"], name=call["name"], status="error")
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] is not None and call["id"] not in answered
    ]
