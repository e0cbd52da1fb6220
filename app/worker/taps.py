"""Takes what a graph emits in the moment in which it does, before anybody can change it.

LangGraph hands on what was emitted later and by reference: what consumes ``astream`` finds a value
that the graph may have changed since. The ways to be there earlier are LangGraph's own business;
this is the one place that knows them, and ``tests/unit/worker/test_taps.py`` tells when they are
others.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import orjson
from langchain_core.messages import BaseMessage
from langgraph.config import get_config
from langgraph.pregel._messages import StreamMessagesHandler
from langgraph.pregel.protocol import StreamProtocol
from langgraph.runtime import Runtime

from app.runs.wire import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Coroutine

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel.protocol import StreamChunk

    from app.worker.parts import Part

_STREAM = "__pregel_stream"
_RUNTIME = "__pregel_runtime"
_NAMESPACE = "checkpoint_ns"
_SEPARATOR = "|"


class Taps:
    """The ends of a graph's emitting, on the loop that they are made on.

    Args:
        modes: what is wanted of what LangGraph streams.
        subgraphs: whether what graphs within the graph emit is wanted too.
        take: given each part, frozen or to be frozen before it returns; called on the loop.
        is_full: whether too much is pending, in any thread.
        room: waits until it is not. Threads wait for it; on the loop, the graph's driver does
            between two steps.
    """

    def __init__(
        self,
        modes: Collection[str],
        *,
        subgraphs: bool,
        take: Callable[[Part], None],
        is_full: Callable[[], bool],
        room: Callable[[], Coroutine[Any, Any, None]],
    ) -> None:
        self._modes = frozenset(modes)
        self._subgraphs = subgraphs
        self._take = take
        self._is_full = is_full
        self._room = room
        self._loop = asyncio.get_running_loop()

    def tapped(self, config: RunnableConfig) -> RunnableConfig:
        """The configuration with which a graph emits into here."""
        own = {
            _STREAM: StreamProtocol(self._hear, cast("set[Any]", self._of_the_loop())),
            _RUNTIME: Runtime(stream_writer=self._write),
        }
        callbacks = list(cast("list[Any]", config.get("callbacks") or []))
        if "messages" in self._modes:
            callbacks.append(StreamMessagesHandler(self._hear, subgraphs=True, parent_ns=()))
        return {
            **config,
            "configurable": {**config.get("configurable", {}), **own},
            "callbacks": callbacks,
        }

    def _of_the_loop(self) -> set[str]:
        """What LangGraph emits itself, between steps; the rest is emitted by nodes."""
        return set(self._modes - {"messages", "custom"})

    def _write(self, data: Any) -> None:  # noqa: ANN401 - whatever a node emits
        if "custom" in self._modes:
            name = get_config()["configurable"].get(_NAMESPACE, "")
            self._hear((tuple(name.split(_SEPARATOR)[:-1]), "custom", data))

    def _hear(self, chunk: StreamChunk) -> None:
        namespace, mode, data = chunk
        if namespace and not self._subgraphs:
            return
        part = (namespace, mode, _frozen(mode, data))
        if self._is_on_the_loop():
            self._take(part)
            return
        self._loop.call_soon_threadsafe(self._take, part)
        if self._is_full():
            asyncio.run_coroutine_threadsafe(self._room(), self._loop).result()

    def _is_on_the_loop(self) -> bool:
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False


def _frozen(mode: str, data: Any) -> Any:  # noqa: ANN401 - whatever a graph emits
    """The same that nobody else holds. States are frozen by whoever takes them, at once."""
    if mode == "messages":
        message, metadata = data
        return _copied(message), metadata
    if mode in {"custom", "updates"}:
        return orjson.Fragment(to_json(data))
    return data


def _copied(message: BaseMessage) -> BaseMessage:
    """A message of its own: deltas are merged before they are frozen."""
    try:
        return message.model_copy(deep=True)
    except Exception:  # noqa: BLE001 - what cannot be copied is named by its type
        return type(message).model_validate(orjson.loads(to_json(message)))
