"""What the scripted model server does with one request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Body = dict[str, object]

ERROR_TEXTS = {
    400: '"{model}" does not support tools',
    404: "model '{model}' not found",
    499: "request canceled",
    500: "model runner has unexpectedly stopped, this may be due to resource limitations"
    " or an internal error, check ollama server logs for details",
    503: "server busy, please try again.  maximum pending requests exceeded",
}


class ToolCall(BaseModel):
    """A tool call that the model makes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    arguments: dict[str, object] = Field(default_factory=dict)
    id: str | None = None


class Script(BaseModel):
    """One answer, and what goes wrong with it.

    Positions (``…_at``) count the tokens sent before it happens: 0 is before the first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    """The answer, split into words. Neither this nor ``tokens``: an echo of the last message."""
    tokens: tuple[str, ...] | None = None
    """The answer, token by token."""
    thinking: tuple[str, ...] = ()
    """Tokens of thought, sent before the answer."""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_calls_in: Literal["chunk", "done"] = "chunk"
    """Whether calls come in a chunk of their own or together with ``done``."""
    done_reason: Literal["stop", "length", "unload"] | None = "stop"

    load_seconds: float = 0
    """Time to load the model, if this request has to."""
    prefill_tokens_per_second: float | None = None
    decode_tokens_per_second: float | None = None
    prompt_tokens: int | None = None
    """Counted from the messages if not given."""
    cached_tokens: int = 0
    """Prompt tokens that cost no time. ``prompt_eval_count`` counts them all the same."""

    status: int = 200
    """Anything else is answered before the first byte, with ``error``."""
    error: str | None = None
    """Text of the error; by default Ollama's own for the status (500 within a stream)."""
    error_at: int | None = None
    cut_at: int | None = None
    """Ends the body in good order there, without ``done``."""
    reset_at: int | None = None
    """Drops the connection there."""
    stall_at: int | None = None
    """Waits there until the request is released."""
    malformed_at: int | None = None
    """Sends a line there that is no JSON, and ends."""
    load_only: bool = False
    """Answers like a server that only loaded: nothing said, ``done_reason: load``."""

    def error_text(self, model: str, *, status: int | None = None) -> str:
        """Return the words of the error."""
        return self.error or ERROR_TEXTS.get(status or self.status, "internal server error").format(
            model=model
        )


ECHO = Script()

Scripter = Callable[[Body], Script]
"""Chooses the script for a request by its body."""


def last_user_text(body: Body) -> str:
    """Return what the user said last: the prompt, or the last message of the role ``user``."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        return str(body.get("prompt") or body.get("input") or "")
    said = [str(m.get("content", "")) for m in messages if m.get("role") == "user"]
    return said[-1] if said else ""


def answer_tokens(script: Script, body: Body) -> tuple[str, ...]:
    """Return the tokens of the answer, before any limit."""
    if script.tokens is not None:
        return script.tokens
    if script.text is None and script.tool_calls:
        return ()
    text = script.text if script.text is not None else f"You said: {last_user_text(body)}"
    return words_of(text)


def words_of(text: str) -> tuple[str, ...]:
    """Split a text into words that give the text again when joined."""
    words: list[str] = []
    for piece in text.split(" "):
        words.append(f" {piece}" if words else piece)
    return tuple(word for word in words if word)
