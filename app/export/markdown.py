"""A conversation for people to read: who said what, what was called, what came of it. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from app.agent.notes import notes_in
from app.export.markup import code, fenced, image, quoted, words
from app.runs.wire import to_json
from app.tools.outcomes import METADATA, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from app.export.conversation import Conversation

_LAID_OUT = 64 * 1024
_TIMES = 4
"""A list of little, deep down, becomes a hundred times as long by what stands before each line."""
_SPEAKERS = {"human": "You", "ai": "Assistant", "system": "System"}
_BECAME = {
    Outcome.OK: "It went well.",
    Outcome.ERROR: "It failed.",
    Outcome.STOPPED: "It was stopped.",
    Outcome.TIMEOUT: "It took too long.",
    Outcome.CUT: "It went well. Its result was too long to be kept whole.",
    Outcome.LOST: "Nobody knows whether it had an effect.",
    Outcome.REJECTED: "You did not let it be made.",
    Outcome.EXPIRED: "Nobody said in time whether it may be made.",
}


def conversation_markdown(conversation: Conversation) -> Iterator[str]:
    """A conversation as Markdown, block by block, a blank line after each."""
    heading = conversation.heading
    yield f"# {words(heading.title or '') or 'A conversation without a title'}\n\n"
    yield f"- Conversation {code(str(heading.thread_id))}\n"
    yield f"- Begun {_moment(heading.created_at)}\n"
    yield f"- Last changed {_moment(heading.updated_at)}\n\n"
    for message in conversation.messages:
        for block in _blocks(message):
            yield f"{block}\n"
    for asked in conversation.waits_for:
        yield f"## Waiting for you\n\n{_json(asked)}\n"
    if conversation.others:
        yield f"## What else it holds\n\n{_json(conversation.others)}\n"


def _blocks(message: object) -> Iterator[str]:
    """What one message comes to."""
    if isinstance(message, ToolMessage):
        yield from _result(message)
    elif isinstance(message, BaseMessage):
        yield f"## {_SPEAKERS.get(message.type) or words(message.type)}\n"
        yield from _content(message.content)
        if isinstance(message, AIMessage):
            yield from _calls(message)
    else:  # of an operator's graph, which keeps its own kind
        yield "## Message\n"
        yield _json(message)


def _calls(message: AIMessage) -> Iterator[str]:
    for call in message.tool_calls:
        yield f"### Tool call {code(call['name'])}\n"
        yield _json(call["args"])
    for broken in message.invalid_tool_calls:
        yield f"### Tool call {code(broken['name'] or '')} that could not be read\n"
        yield fenced(str(broken["args"] or ""))


def _result(message: ToolMessage) -> Iterator[str]:
    said = message.response_metadata.get(METADATA)
    told: Mapping[str, Any] = said if isinstance(said, dict) else {}
    yield f"### Result of {code(str(message.name or told.get('tool') or 'a tool'))}\n"
    outcome = told.get("outcome")
    if isinstance(outcome, str) and outcome in _BECAME:
        yield f"{_BECAME[Outcome(outcome)]}\n"
    for note in notes_in(message).splitlines():
        yield f"{words(note.strip('[]'))}\n"
    yield from _content(message.content, of_tool=True)


def _content(content: str | list[str | dict[str, Any]], *, of_tool: bool = False) -> Iterator[str]:
    """Text is quoted, so that it looks as it was meant to; a tool's is shown as it is."""
    for part in [content] if isinstance(content, str) else content:
        text = part if isinstance(part, str) else _text_of(part)
        if text is not None:
            if text:
                yield fenced(text) if of_tool else quoted(text)
        elif isinstance(part, dict):
            url = _image_of(part)
            yield _json(part) if url is None else image(url)


def _text_of(block: Mapping[str, Any]) -> str | None:
    text = block.get("text")
    return text if block.get("type") == "text" and isinstance(text, str) else None


def _image_of(block: Mapping[str, Any]) -> str | None:
    """Where the image of a block is, in the forms that LangChain has for it."""
    if block.get("type") == "image_url":
        given = block.get("image_url")
        url = given.get("url") if isinstance(given, dict) else given
        return url if isinstance(url, str) else None
    if block.get("type") != "image":
        return None
    if isinstance(data := block.get("base64", block.get("data")), str):
        return f"data:{block.get('mime_type', 'image')};base64,{data}"
    url = block.get("url")
    return url if isinstance(url, str) else None


def _json(value: object) -> str:
    """Any value, laid out where that does not make it many times as long."""
    shown = to_json(value).decode()
    if len(shown) <= _LAID_OUT:
        laid_out = json.dumps(json.loads(shown), indent=2, ensure_ascii=False)
        shown = laid_out if len(laid_out) <= _TIMES * len(shown) else shown
    return fenced(shown, "json")


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
