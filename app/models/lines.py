"""Reads an answer on Ollama's wire line by line, and refuses what is no answer.

The client library skips over most of this: it takes an end without ``done`` for the end, and
dies of a line that it cannot parse with an error that names neither the model nor the server.
"""

from __future__ import annotations

import json
from typing import Any

from app.models.errors import ModelMalformed, ModelStreamCut
from app.models.failures import error_of_response

MAX_LINE = 8 * 1024 * 1024
"""A line is one token, or one set of tool calls, or a whole answer that was not streamed."""

DEEPEST = 64
"""Levels of a call's arguments: deeper ones could be kept in no checkpoint."""

_WITHIN_STREAM = 500


class LineReader:
    """Cuts bytes into lines, however the network cut them before."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that are complete now.

        Raises:
            ModelMalformed: a line is too long to be one.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ModelMalformed
        return [line for line in lines if line.strip()]

    def rest(self) -> list[bytes]:
        """Return what stands after the last newline, at the end of the body."""
        return [self._rest] if self._rest.strip() else []


class AnswerCheck:
    """Knows whether the answer so far is sound, and whether it is whole."""

    def __init__(self) -> None:
        self.done = False

    def line(self, line: bytes) -> dict[str, Any]:
        """Return the line's object.

        Raises:
            ModelError: the line reports a failure, or is not what it should be.
        """
        part = _object(line)
        _check_message(part.get("message", {}))
        _check_text(part.get("response"))
        self.done = self.done or part.get("done") is True
        return part

    def end(self) -> None:
        """Take note that nothing more will come.

        Raises:
            ModelStreamCut: the server did not say that it was done.
        """
        if not self.done:
            raise ModelStreamCut


class EmbeddingCheck:
    """Knows whether an answer with embeddings, which is a single object, is sound."""

    def __init__(self) -> None:
        self.done = False

    def line(self, line: bytes) -> dict[str, Any]:
        """Return the answer's object.

        Raises:
            ModelError: it reports a failure, or is not what it should be.
        """
        part = _object(line)
        if not isinstance(part.get("embeddings", part.get("embedding")), list):
            raise ModelMalformed
        self.done = True
        return part

    def end(self) -> None:
        """Take note that nothing more will come.

        Raises:
            ModelStreamCut: there was no answer.
        """
        if not self.done:
            raise ModelStreamCut


def only_loaded(part: dict[str, Any]) -> bool:
    """Tell whether an answer's first line says that the model was loaded, and that is all."""
    message = part.get("message")
    said = message.get("content") if isinstance(message, dict) else part.get("response")
    return part.get("done") is True and part.get("done_reason") == "load" and not said


def _object(line: bytes) -> dict[str, Any]:
    try:
        part = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise ModelMalformed from None
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists without end
        raise ModelMalformed(by_the_model=True) from None
    if not isinstance(part, dict):
        raise ModelMalformed
    if error := part.get("error"):
        raise error_of_response(_WITHIN_STREAM, str(error))
    return part


def _check_message(message: object) -> None:
    if not isinstance(message, dict):
        raise ModelMalformed
    _check_text(message.get("content"))
    _check_text(message.get("thinking"))
    calls = message.get("tool_calls")
    if calls is None:
        return
    if not isinstance(calls, list):
        raise ModelMalformed
    for call in calls:
        _check_call(call)


def _check_text(text: object) -> None:
    if text is not None and not isinstance(text, str):
        raise ModelMalformed


def _check_call(call: object) -> None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise ModelMalformed
    arguments = function.get("arguments")
    if not isinstance(function.get("name"), str) or not isinstance(arguments, dict):
        raise ModelMalformed
    if not _is_shallow(arguments, DEEPEST):
        raise ModelMalformed(by_the_model=True)


def _is_shallow(value: object, deep: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return deep > 0 and all(_is_shallow(each, deep - 1) for each in inner)
