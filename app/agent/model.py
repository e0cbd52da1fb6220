"""How an operator's graph comes by the service's model."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_ollama import ChatOllama

_offered: ContextVar[ChatOllama] = ContextVar("service_model")


def service_model() -> ChatOllama:
    """The model that the service is configured with, for a graph of ``STOA_GRAPHS``.

    Call it where the graph is built: at the top of the file, or in the function that returns the
    graph. All graphs of a process share it; the service closes it. An agent with tools of your own:

        model = service_model()
        graph = build_agent(
            model,
            Path(__file__).with_name("prompt.md"),
            model.num_ctx - model.num_predict,
            tools=[AgentTool.from_function(look_up, read_only=True, timeout_seconds=10)],
        )

    Raises:
        RuntimeError: no graphs are being loaded.
    """
    try:
        return _offered.get()
    except LookupError:
        raise RuntimeError("`service_model()` is for the building of a graph") from None


@contextmanager
def offered(model: ChatOllama) -> Iterator[None]:
    """Let the graphs that are loaded within have this model."""
    before = _offered.set(model)
    try:
        yield
    finally:
        _offered.reset(before)
