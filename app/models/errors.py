"""What can go wrong with a model, as one tree.

    StoaError
    └── ModelError
        ├── OllamaUnreachable     no connection to any model server with the model
        ├── ModelMissing          the server does not have this model
        ├── ModelBusy             the server has too much to do
        ├── ModelUnsupported      the model cannot do what was asked of it
        │   └── ToolsUnsupported  it cannot call tools
        ├── ModelFailed           the server says that it failed
        │   └── ModelEmpty        loaded, but nothing was answered
        ├── ModelStreamCut        the answer ended in the middle
        ├── ModelMalformed        the answer is not what it should be
        ├── ModelTimeout          the server went silent
        └── ModelCallOutsideRun   a call that nobody answers for

The messages are read by the person who asked. They never carry the server's own words: those
may quote the conversation.
"""

from __future__ import annotations

from tenancy.errors import StoaError


class ModelError(StoaError):
    """A model call did not end with a whole answer."""

    code = "model_error"
    message = "The model could not answer."


class OllamaUnreachable(ModelError):
    """No connection to the model server can be made."""

    code = "ollama_unreachable"
    message = "The model server cannot be reached. Try again in a moment."


class ModelMissing(ModelError):
    """The model server does not have the model."""

    code = "model_missing"
    message = "The model is not installed on the model server."


class ModelBusy(ModelError):
    """The model server turned the request away, repeatedly."""

    code = "model_busy"
    message = "The model server is busy. Try again in a moment."


class ModelUnsupported(ModelError):
    """The model, or its server, does not do what the request asks."""

    code = "model_unsupported"
    message = "The model cannot do what was asked of it."


class ToolsUnsupported(ModelUnsupported):
    """The model was offered tools, and is none that calls any."""

    code = "model_tools_unsupported"
    message = "The model does not support tools."


class ModelFailed(ModelError):
    """The model server reported a failure of its own."""

    code = "model_failed"
    message = "The model failed while it was answering. Try again."


class ModelEmpty(ModelFailed):
    """The model was loaded, but nothing came after it."""

    code = "model_empty"
    message = "The model was loaded but did not answer. Try again."


class ModelStreamCut(ModelError):
    """The answer ended before the server said that it was done."""

    code = "model_stream_cut"
    message = "The connection to the model broke off in the middle of the answer. Try again."


class ModelMalformed(ModelError):
    """The answer breaks the wire protocol, or a tool call in it cannot be read."""

    code = "model_malformed"
    message = "The model's answer could not be understood. Try again."

    def __init__(self, *, by_the_model: bool = False) -> None:
        super().__init__()
        self.by_the_model = by_the_model
        """Whether it is the model's words, not its server's."""


class ModelTimeout(ModelError):
    """Nothing came from the model server for too long."""

    code = "model_timeout"
    message = "The model did not go on with its answer in time. Try again."


class ModelCallOutsideRun(ModelError):
    """A model call that is no run's, or comes after its run has ended."""

    code = "model_call_outside_run"
    message = "The model can only be called while a run is being executed."


def error_by_code(code: str) -> ModelError:
    """Return the error that a stored code stands for; the general one if it is not known."""
    waiting: list[type[ModelError]] = [ModelError]
    while waiting:
        each = waiting.pop()
        if each.code == code:
            return each()
        waiting.extend(each.__subclasses__())
    return ModelError()
