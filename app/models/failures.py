"""From what the libraries raise to what we say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING

import httpx
import ollama
from langchain_core.exceptions import OutputParserException
from pydantic import ValidationError

from app.models.errors import (
    ModelBusy,
    ModelError,
    ModelFailed,
    ModelMalformed,
    ModelMissing,
    ModelStreamCut,
    ModelTimeout,
    ModelUnsupported,
    OllamaUnreachable,
    ToolsUnsupported,
)

if TYPE_CHECKING:
    from tenancy.scheduler.seats import PoolFailure

_CLIENT_LIBRARIES = ("ollama", "langchain_ollama")
_UNREADABLE_TOOL_CALL = "error parsing tool call"
_BY_STATUS: dict[int, type[ModelError]] = {
    400: ModelUnsupported,
    404: ModelMissing,
    429: ModelBusy,
    503: ModelBusy,
}
_BY_EXCEPTION: tuple[tuple[type[BaseException], type[ModelError]], ...] = (
    (httpx.ConnectError, OllamaUnreachable),
    (httpx.ConnectTimeout, OllamaUnreachable),
    (httpx.TimeoutException, ModelTimeout),
    (httpx.TransportError, ModelStreamCut),
    (ConnectionError, OllamaUnreachable),
    (json.JSONDecodeError, ModelMalformed),
    (OutputParserException, ModelMalformed),
    (ValidationError, ModelMalformed),
)


def describe_model_failure(exc: BaseException) -> ModelError | None:
    """Return what an exception says about the model, or None if it is about something else.

    It looks at the exception, its causes, and the members of groups. What a library raises counts
    only if it came through the model client, since a tool may fail with the same HTTP errors.
    """
    for each in _with_causes(exc):
        if isinstance(each, ModelError):
            return each
        if isinstance(each, ollama.ResponseError):
            return error_of_response(each.status_code, each.error)
        if _came_through_client(each):
            for library_error, ours in _BY_EXCEPTION:
                if isinstance(each, library_error):
                    return ours()
    return None


def error_of_response(status: int, text: str) -> ModelError:
    """Return the error that a status and the server's words stand for.

    An error line within a stream has no status of its own: any status that is not listed will do.
    """
    if _UNREADABLE_TOOL_CALL in text:
        return ModelMalformed(by_the_model=True)
    if status == HTTPStatus.BAD_REQUEST:
        return _unsupported(text)
    return _BY_STATUS.get(status, ModelFailed)()


def error_of_transport(exc: httpx.TransportError) -> ModelError:
    """Return the error that a failure of the connection stands for."""
    return next(ours() for theirs, ours in _BY_EXCEPTION if isinstance(exc, theirs))


def failure_of_pool(error: ModelError | None) -> PoolFailure | None:
    """What a failed call says about the pool that it went to, if anything."""
    if isinstance(error, OllamaUnreachable):
        return "unreachable"
    if isinstance(error, ModelMissing):
        return "model_missing"
    if isinstance(error, ModelMalformed) and error.by_the_model:
        return None
    if isinstance(error, ModelTimeout | ModelStreamCut | ModelMalformed):
        return "failed"
    return "failed" if type(error) is ModelFailed else None


def _unsupported(text: str) -> ModelUnsupported:
    if "does not support tools" in text:
        return ToolsUnsupported()
    if "does not support thinking" in text:
        return ModelUnsupported("The model does not support thinking.")
    return ModelUnsupported()


def _with_causes(exc: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting = [exc]
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(each.exceptions)
        if each.__cause__ is not None:
            waiting.append(each.__cause__)
        elif each.__context__ is not None and not each.__suppress_context__:
            waiting.append(each.__context__)


def _came_through_client(exc: BaseException) -> bool:
    step = exc.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] in _CLIENT_LIBRARIES:
            return True
        step = step.tb_next
    return False
