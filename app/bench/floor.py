"""The floor: a bare LangGraph loop with the library's Postgres saver, and nothing around it."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from app.bench.graphs.three_steps import Steps, three_steps
from app.bench.load import Timing
from tenancy.checkpoints.bare import bare_savers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

CONNECTIONS = 10
"""As many as the service's processes have for the same work."""


@asynccontextmanager
async def open_floor(
    dsn: str, graph_input: Steps
) -> AsyncIterator[Callable[[int], Awaitable[Timing]]]:
    """Prepare a database of its own and yield what runs the graph once on a new thread."""
    graph = three_steps.compile()
    async with bare_savers(dsn, CONNECTIONS) as new_saver:

        async def run_once(_: int) -> Timing:
            # One saver per run: a shared one is serial.
            bound = graph.copy(update={"checkpointer": new_saver()})
            config: RunnableConfig = {"configurable": {"thread_id": str(uuid4())}}
            started = time.perf_counter()
            first = 0.0
            async for _part in bound.astream(
                graph_input, config, stream_mode=["values"], durability="sync"
            ):
                first = first or time.perf_counter() - started
            return Timing(first, time.perf_counter() - started)

        yield run_once
