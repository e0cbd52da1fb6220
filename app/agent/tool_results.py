"""What of tools' results the model is given; the thread keeps them as they are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage

from app.agent.notes import notes_in

CHARACTERS_PER_TOKEN = 4
SHARE = 2
"""Results of one turn may take one part in so many of the room for the conversation."""
LEAST = 500
"""Characters that each result may have in any case."""
CUT = "\n[The rest was left out here: it is too long for you.]"
UNSEEN = "[An image, which the person can see and you cannot.]"


def readable_results(
    messages: Sequence[BaseMessage], tokens: int, *, sees_images: bool
) -> list[BaseMessage]:
    """The messages with results that fit the model and its window.

    A model's server refuses the whole conversation for an image that its model cannot read, and
    one long result would leave no room for what the person said.
    """
    number = max(1, sum(isinstance(each, ToolMessage) for each in _newest_turn(messages)))
    most = max(LEAST, tokens * CHARACTERS_PER_TOKEN // SHARE // number)
    return [
        _readable(each, most, sees_images=sees_images) if isinstance(each, ToolMessage) else each
        for each in messages
    ]


def _readable(message: ToolMessage, most: int, *, sees_images: bool) -> ToolMessage:
    text = notes_in(message) + message.text
    shown = text if len(text) <= most else f"{text[:most]}{CUT}"
    images = [] if isinstance(message.content, str) else [*filter(_is_image, message.content)]
    if not images:
        return message if shown == message.content else _with(message, shown)
    if sees_images:
        return _with(message, [{"type": "text", "text": shown}, *images])
    return _with(message, "\n".join(each for each in (shown, *([UNSEEN] * len(images))) if each))


def _with(message: ToolMessage, content: str | list[str | dict[str, object]]) -> ToolMessage:
    return message.model_copy(update={"content": content})


def _is_image(block: str | dict[str, object]) -> bool:
    return isinstance(block, dict) and block.get("type") == "image_url"


def _newest_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    begins = [n for n, each in enumerate(messages) if isinstance(each, HumanMessage)]
    return messages[begins[-1] :] if begins else messages
