"""How many tools a run calls, whoever calls them: the built-in agent, or a graph of an operator's.

Counted when a call begins, and stored with what the attempt comes to: an attempt whose worker dies
takes its count with it, since the next one makes what was unfinished again.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import structlog
from langchain_core.callbacks import BaseCallbackHandler

from app.logging import facts_of
from tenancy.database.engine import DatabaseUnavailable

if TYPE_CHECKING:
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

log = structlog.get_logger(__name__)

_COUNT = "SELECT tenant.count_tool_calls($1, $2, $3, $4)"


class ToolCount(BaseCallbackHandler):
    """Hears of the beginnings of tools' calls, from coroutines and from threads."""

    run_inline = True  # no task of its own for an addition

    def __init__(self) -> None:
        self.calls = 0
        self._adding = threading.Lock()

    @property
    def ignore_chain(self) -> bool:
        """Nothing to do with nodes."""
        return True

    @property
    def ignore_llm(self) -> bool:
        """Nothing to do with models, nor with each of their tokens."""
        return True

    @property
    def ignore_chat_model(self) -> bool:
        """Nor with those that chat."""
        return True

    @property
    def ignore_retriever(self) -> bool:
        """Nor with retrievers."""
        return True

    @property
    def ignore_retry(self) -> bool:
        """A call that is tried again is one."""
        return True

    @property
    def ignore_custom_event(self) -> bool:
        """Nor with what a graph makes up."""
        return True

    def on_tool_start(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - what it is called with
        """A call begins."""
        with self._adding:
            self.calls += 1


async def count_tool_calls(database: TenantDatabase, run: ClaimedRun, calls: int) -> None:
    """Store what an attempt has called that another one goes on from.

    At most once: where the database is away just now, the calls are not counted.

    Raises:
        LeaseLost: the run is another worker's; nothing was written.
    """
    if not calls:
        return
    try:
        await database.call(run, _COUNT, run.run_id, run.fence, calls)
    except DatabaseUnavailable as error:
        log.warning("tool calls were not counted", calls=calls, **facts_of(error))
