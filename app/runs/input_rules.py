"""What a client may send into a run. Pure: nothing here reads or writes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from langchain_core.messages import RemoveMessage

from app.runs.threads import TITLE_LENGTH
from app.runs.wire import to_json
from tenancy.errors import InvalidInput

MOST_MESSAGES = 100
MOST_BLOCKS = 1000
"""Content blocks in one message."""
LONGEST_ID = 200
MENTIONS = "mentions"
"""The key of ``additional_kwargs`` under which a message points at things; see ``app.mentions``."""
MOST_MENTIONS = 100
LONGEST_MENTION = 2000

_HUMAN = frozenset({"human", "user"})
_MESSAGE_FIELDS = frozenset(
    {"type", "role", "content", "id", "name", "example", "additional_kwargs", "response_metadata"}
)
_NOT_A_CLIENTS = frozenset(
    {
        "user_id",
        "namespace",
        "tenant",
        "tenant_id",
        "run_id",
        "graph_id",
        "assistant_id",
        "checkpoint_map",
    }
)
_INTERNAL_PREFIXES = ("__", "langgraph_")


class MessageTooLarge(InvalidInput):
    """One message is longer than this service takes."""

    code = "message_too_large"
    message = "The message is too long."


def check_scope(values: Mapping[str, Any], where: str) -> None:
    """Refuse keys by which a client would choose whose data a run touches, or steer LangGraph.

    Raises:
        InvalidInput: there is one; the message names it only if it is one of ours.
    """
    for key in values:
        if key in _NOT_A_CLIENTS:
            raise InvalidInput(f"`{where}.{key}` is not for clients to set.")
        if key.startswith(_INTERNAL_PREFIXES):
            raise InvalidInput(f"`{where}` has a key that LangGraph keeps for itself.")


def check_metadata(values: Mapping[str, Any], where: str) -> None:
    """Refuse metadata that LangGraph would take for its own: the run's id decides how it resumes.

    Raises:
        InvalidInput: there is some.
    """
    if "run_id" in values:
        raise InvalidInput(f"`{where}.run_id` is not for clients to set.")
    if any(key.startswith(_INTERNAL_PREFIXES) for key in values):
        raise InvalidInput(f"`{where}` has a key that LangGraph keeps for itself.")


def check_no_constructor(value: Mapping[str, Any]) -> None:
    """Refuse LangChain's serialised constructors.

    Raises:
        InvalidInput: the object is one.
    """
    if "lc" in value:
        raise InvalidInput("Objects with the key `lc` are not accepted.")


def check_messages(given: Mapping[str, Any], *, most_bytes: int, may_remove: bool = False) -> None:
    """Let only a person's own words through: nobody speaks for the model or its tools.

    With ``may_remove`` messages may also be taken away, whoever's they are.

    Raises:
        InvalidInput: a message is forged, malformed or empty.
        MessageTooLarge: one is too long.
    """
    if "messages" not in given:
        return
    messages = given["messages"]
    if not isinstance(messages, list):
        messages = [messages]
    if len(messages) > MOST_MESSAGES:
        raise InvalidInput(f"At most {MOST_MESSAGES} messages at once.")
    for message in messages:
        if may_remove and _is_removal(message):
            _check_removal(message)
        else:
            _check_message(message, most_bytes)


def check_agent_input(given: Mapping[str, Any], where: str = "input") -> None:
    """The built-in agent takes messages, at least one, and nothing else.

    Raises:
        InvalidInput: it was given something else.
    """
    if not given.get("messages"):
        raise InvalidInput("Send at least one message.")
    if set(given) != {"messages"}:
        raise InvalidInput(f"`{where}` takes `messages` only.")


def check_answer(given: object, most_bytes: int) -> None:
    """Bound what a person answers to a run that waits.

    Raises:
        InvalidInput: it is too long.
    """
    if len(to_json(given)) > most_bytes:
        raise InvalidInput(f"`command.resume` has at most {most_bytes} bytes.")


def with_removals(given: Mapping[str, Any]) -> dict[str, Any]:
    """The same values with LangChain's own objects for the messages that are to be removed."""
    messages = given.get("messages")
    if messages is None:
        return dict(given)
    listed = messages if isinstance(messages, list) else [messages]
    made = [RemoveMessage(id=each["id"]) if _is_removal(each) else each for each in listed]
    return {**given, "messages": made}


def title_of(given: Mapping[str, Any] | None) -> str | None:
    """A thread's title: the first line of the first message, bounded."""
    messages = (given or {}).get("messages")
    if not messages:
        return None
    first = messages[0] if isinstance(messages, list) else messages
    text = first if isinstance(first, str) else "\n".join(_texts(first["content"]))
    line = next((line for line in text.splitlines() if line.strip()), "")
    words = " ".join(line.split())
    return (words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1]}…") or None


def _is_removal(message: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(message, Mapping) and message.get("type") == "remove"


def _check_removal(message: Mapping[str, Any]) -> None:
    if not {"type", "id", "content"}.issuperset(message) or message.get("content"):
        raise InvalidInput("A removal is `{type: remove, id}`.")
    named = message.get("id")
    if not isinstance(named, str) or not 0 < len(named) <= LONGEST_ID:
        raise InvalidInput(f"A removal's `id` is text of at most {LONGEST_ID} characters.")


def _check_message(message: object, most_bytes: int) -> None:
    if isinstance(message, str):
        _check_texts([message], most_bytes)
        return
    if not isinstance(message, Mapping):
        raise InvalidInput("A message is an object with `type` or `role`, and `content`.")
    roles = [message[key] for key in ("type", "role") if key in message]
    if not roles or any(not isinstance(role, str) or role not in _HUMAN for role in roles):
        raise InvalidInput("Only human messages are accepted: `type` must be `human`.")
    if not _MESSAGE_FIELDS.issuperset(message):
        raise InvalidInput("A message has a field that is not known.")
    for key in ("id", "name"):
        value = message.get(key)
        if value is not None and not (isinstance(value, str) and 0 < len(value) <= LONGEST_ID):
            raise InvalidInput(f"A message's `{key}` is text of at most {LONGEST_ID} characters.")
    if message.get("response_metadata", {}) != {}:
        raise InvalidInput("A message's `response_metadata` is not for clients to set.")
    _check_mentions(message.get("additional_kwargs", {}))
    _check_texts(_texts(message.get("content")), most_bytes)


def _check_mentions(more: object) -> None:
    """What a message points at is all that a client may say beside it."""
    if more == {}:
        return
    if not isinstance(more, Mapping) or set(more) != {MENTIONS}:
        raise InvalidInput(
            f"Of a message's `additional_kwargs`, clients may set `{MENTIONS}` only."
        )
    refs = more[MENTIONS]
    if not isinstance(refs, list) or len(refs) > MOST_MENTIONS:
        raise InvalidInput(f"A message's `{MENTIONS}` is a list of at most {MOST_MENTIONS}.")
    if not all(isinstance(each, str) and 0 < len(each) <= LONGEST_MENTION for each in refs):
        raise InvalidInput(f"A mention is text of at most {LONGEST_MENTION} characters.")


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        raise InvalidInput("A message's `content` is text, or a list of text blocks.")
    if len(content) > MOST_BLOCKS:
        raise InvalidInput(f"A message has at most {MOST_BLOCKS} content blocks.")
    return [_block_text(block) for block in content]


def _block_text(block: object) -> str:
    if isinstance(block, str):
        return block
    if (
        isinstance(block, Mapping)
        and set(block) == {"type", "text"}
        and block["type"] == "text"
        and isinstance(block["text"], str)
    ):
        return block["text"]
    raise InvalidInput("A content block is `{type: text, text}`; others are not available yet.")


def _check_texts(texts: list[str], most_bytes: int) -> None:
    if not any(text.strip() for text in texts):
        raise InvalidInput("A message must not be empty.")
    if sum(len(text.encode()) for text in texts) > most_bytes:
        raise MessageTooLarge(f"A message has at most {most_bytes} bytes of text.")
