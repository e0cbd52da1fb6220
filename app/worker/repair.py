"""Leaves a thread in order after a graph that does not stop by itself was cut off.

What it had begun to answer is kept, and tool calls without a result are closed: a model's API would
refuse a history with open ones.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog
from langchain_core.messages import AIMessage, AIMessageChunk

from app.agent.approving import calls_to_approve
from app.agent.history import closing_messages
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import LeaseLost

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.pregel import Pregel

    from app.worker.parts import Part

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class PartialAnswer:
    """What was streamed of the message that is being answered."""

    _chunks: list[AIMessageChunk] = field(default_factory=list)
    _node: str | None = None

    def follow(self, part: Part) -> None:
        """Take note of what the graph streamed."""
        namespace, mode, data = part
        if namespace:
            return
        if mode == "values":
            self._chunks = []  # whatever came before is in the state now
        elif mode == "messages":
            self._take(*data)

    def _take(self, message: BaseMessage, metadata: dict[str, Any]) -> None:
        if not isinstance(message, AIMessageChunk):
            return
        if self._chunks and self._chunks[0].id != message.id:
            self._chunks = []
        self._chunks.append(message)
        self._node = metadata.get("langgraph_node")

    def message(self, mark: dict[str, str]) -> AIMessage | None:
        """What there is of it, marked; None where nothing was said."""
        if not self._chunks:
            return None
        whole = self._chunks[0]
        for chunk in self._chunks[1:]:
            whole = whole + chunk
        if not whole.text:
            return None
        return AIMessage(whole.content, id=whole.id, response_metadata=mark)

    @property
    def node(self) -> str | None:
        """The node that was answering."""
        return self._node


async def repair_thread(
    graph: Pregel[Any, Any, Any, Any],
    config: RunnableConfig,
    partial: AIMessage | None = None,
    node: str | None = None,
) -> None:
    """Bring a conversation in order, by a state update of the run's own.

    A graph whose state is no conversation is left as it is. So is one that fails at it.

    Raises:
        LeaseLost: the run is another worker's.
        DatabaseUnavailable: Postgres stayed away.
    """
    head = await graph.aget_state(config)
    messages = head.values.get("messages") if isinstance(head.values, dict) else None
    if not isinstance(messages, list):
        return
    missing: list[BaseMessage] = [*closing_messages(messages, calls_to_approve(head.interrupts))]
    if partial is not None and partial.id not in {message.id for message in messages}:
        missing.append(partial)
    if not missing:
        return
    as_node = node if partial is not None else next(iter(head.next), None)
    try:
        await graph.aupdate_state(config, {"messages": missing}, as_node=as_node)
    except (LeaseLost, DatabaseUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - a graph's own edges are run by this
        log.warning("thread left as it was", error=type(error).__name__)
