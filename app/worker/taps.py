"""Takes what a graph emits in the moment in which it does, before anybody can change it.

LangGraph hands on what was emitted later and by reference: what consumes ``astream`` finds a value
that the graph may have changed since. The ways to be there earlier are LangGraph's own business:
this is the one place that knows them. A LangGraph that has others fails as the worker starts, or in
``tests/unit/worker/test_taps.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import orjson
from langchain_core.messages import BaseMessage
from langgraph._internal._constants import (
    CONFIG_KEY_CHECKPOINT_NS,
    CONFIG_KEY_RUNTIME,
    CONFIG_KEY_STREAM,
    NS_SEP,
)
from langgraph.config import get_config
from langgraph.pregel._messages import StreamMessagesHandler, graph_namespace
from langgraph.pregel.protocol import StreamProtocol
from langgraph.runtime import Runtime

from app.runs.wire import copy_of, to_json
from app.worker.handover import Handover
from app.worker.public import public
from app.worker.states import STATE_MODES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel.protocol import StreamChunk
    from langgraph.store.base import BaseStore

    from app.worker.handover import Bounds
    from app.worker.parts import Part

TICK: Final = "updates"
"""What to have LangGraph stream by itself, so that whoever drives the graph can let it wait: it
comes as each task ends, costs nothing, and is not to be looked at."""


class Taps:
    """The ends of a graph's emitting, on the loop that they are made on.

    Args:
        modes: what is wanted of what LangGraph streams.
        subgraphs: whether what graphs within the graph emit is wanted too.
        take: given each part on the loop, frozen, or to be frozen before it returns: deltas of
            messages, which are copies, and states that the loop itself emits.
        bounds: how much may be pending. Threads wait while it is too much; on the loop, whoever
            drives the graph does.
    """

    def __init__(
        self,
        modes: Collection[str],
        *,
        subgraphs: bool,
        take: Callable[[Part], None],
        bounds: Bounds,
    ) -> None:
        self._modes = frozenset(modes)
        self._subgraphs = subgraphs
        self._handover = Handover(take, bounds)

    def tapped(self, config: RunnableConfig, store: BaseStore | None) -> RunnableConfig:
        """The configuration with which a graph that has this store emits into here.

        Given it, LangGraph takes itself for part of a graph that streams and has the store; it is
        to be asked for :data:`TICK` alone.
        """
        own = {
            CONFIG_KEY_STREAM: StreamProtocol(self._hear, cast("set[Any]", self._of_the_loop())),
            CONFIG_KEY_RUNTIME: Runtime(store=store, stream_writer=self._write),
        }
        callbacks = list(cast("list[Any]", config.get("callbacks") or []))
        if "messages" in self._modes:
            callbacks.append(_Messages(self._hear, subgraphs=self._subgraphs))
        return {
            **config,
            "configurable": {**config.get("configurable", {}), **own},
            "callbacks": callbacks,
        }

    def _of_the_loop(self) -> set[str]:
        """What LangGraph emits itself, between steps; the rest is emitted by nodes."""
        return set(self._modes - {"messages", "custom"})

    def _write(self, data: Any) -> None:  # noqa: ANN401 - whatever a node emits
        if "custom" not in self._modes:
            return
        config = get_config()
        # What a task calls has the task in its name, and is of its graph all the same.
        if self._subgraphs or not graph_namespace(config["metadata"]):
            name = config["configurable"][CONFIG_KEY_CHECKPOINT_NS]
            namespace = tuple(name.split(NS_SEP)[:-1]) if self._subgraphs else ()
            self._hear((namespace, "custom", data))

    def _hear(self, chunk: StreamChunk) -> None:
        namespace, mode, data = chunk
        if namespace and not self._subgraphs:
            return
        if mode == "messages":
            message, metadata = data
            copy = _copied(message)
            self._handover.put((namespace, mode, (copy, copy_of(metadata))), len(message.text))
        elif mode in STATE_MODES and not namespace and self._handover.is_here():
            self._handover.put((namespace, mode, data), 0)  # frozen as it is taken, now
        else:
            frozen = to_json(public(mode, data))
            self._handover.put((namespace, mode, orjson.Fragment(frozen)), len(frozen))


class _Messages(StreamMessagesHandler):
    """LangGraph's own, as it would make it for the graph.

    From a graph that is no part of another, LangGraph keeps away those that do not ask for
    subgraphs: they would be another graph's. So this asks for them until the graph has begun.
    """

    def __init__(self, stream: Callable[[StreamChunk], None], *, subgraphs: bool) -> None:
        super().__init__(stream, subgraphs=True, parent_ns=())
        self._wants_subgraphs = subgraphs

    def on_chain_start(self, *args: Any, **about: Any) -> Any:  # noqa: ANN401 - LangChain's
        """A graph or a node begins, first of all the graph itself."""
        self.subgraphs = self._wants_subgraphs
        return super().on_chain_start(*args, **about)


def _copied(message: BaseMessage) -> BaseMessage:
    """A message of its own: deltas are merged before they are frozen."""
    try:
        return message.model_copy(deep=True)
    except Exception:  # noqa: BLE001 - what cannot be copied is as it would be told
        told = copy_of(message)
        fields = told if isinstance(told, dict) else {"content": told, "id": message.id}
        return type(message).model_construct(**fields)
