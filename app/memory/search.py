"""Finding what is remembered, for a run: by words, and by sense where there is an embedding model.

What was written without an embedding, by a person or under another model, gets one here, a few at a
time before a search. If the model fails or is slow, words are all there is to go by.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from app.logging import facts_of
from app.memory.memories import found
from app.models.errors import ModelError
from tenancy.database.engine import DatabaseUnavailable
from tenancy.database.retry import while_database_is_away
from tenancy.errors import MemoryFull, TokenBudgetExhausted

if TYPE_CHECKING:
    from app.memory.embedding import Embedder, Vector
    from app.memory.memories import FoundMemory
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun
    from tenancy.scheduler.limits import Limits

log = structlog.get_logger(__name__)

EMBEDDING_SECONDS = 3.0
"""How long a search may wait for the model in all."""
MOST_QUERY = 2000
"""Characters of a question; of a longer one, its beginning and its end."""
BATCH = 8
"""Memories that are embedded in one call."""
MOST_BATCHES = 8

_HAS_MEMORIES = "SELECT tenant.has_memories($1)"
_RECALL = "SELECT * FROM tenant.recall($1, $2, $3, $4, $5)"
_TO_EMBED = "SELECT * FROM tenant.memories_to_embed($1, $2, $3, $4)"
_KEEP = "SELECT tenant.keep_embeddings($1, $2, $3, $4, $5, $6, $7, $8)"


class MemorySearch:
    """Searches the memories of one run's user."""

    def __init__(
        self,
        database: TenantDatabase,
        run: ClaimedRun,
        limits: Limits,
        embedder: Embedder | None,
        *,
        seconds: float = EMBEDDING_SECONDS,
    ) -> None:
        self._database = database
        self._run = run
        self._limits = dict(limits)
        self._embedder = embedder
        self._seconds = seconds

    async def find(self, query: str, limit: int) -> list[FoundMemory]:
        """The memories that answer a question best, best first.

        Raises:
            LeaseLost: the run is another worker's.
            DatabaseUnavailable: Postgres stayed away.
        """
        ((any_there,),) = await while_database_is_away(
            self._database.call, self._run, _HAS_MEMORIES
        )
        if not any_there:
            return []
        asked = shortened(query)
        vector = None if self._embedder is None else await self._sense(self._embedder, asked)
        model = None if self._embedder is None else self._embedder.model
        rows = await while_database_is_away(
            self._database.call, self._run, _RECALL, asked, vector, model, limit
        )
        return found(rows)

    async def _sense(self, embedder: Embedder, asked: str) -> Vector | None:
        """The question's embedding, once memories have theirs, as far as there is time."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._seconds
        vector: Vector | None = None
        try:
            (vector,) = await embedder.embed([asked], self._seconds)
            for _ in range(MOST_BATCHES):
                left = ends - loop.time()
                if left <= 0 or not await self._embed_some(embedder, left):
                    break
        except (ModelError, TokenBudgetExhausted, MemoryFull, DatabaseUnavailable) as error:
            log.warning("memories are searched by words only", **facts_of(error))
        return vector

    async def _embed_some(self, embedder: Embedder, seconds: float) -> bool:
        """Embed a few memories that are not, and tell whether there were any."""
        rows = await self._database.call(self._run, _TO_EMBED, embedder.model, BATCH, self._limits)
        if not rows:
            return False
        contents = [row["content"] for row in rows]
        vectors = await embedder.embed(contents, seconds)
        await self._database.call(
            self._run,
            _KEEP,
            self._run.run_id,
            self._run.fence,
            self._limits,
            embedder.model,
            [row["memory_id"] for row in rows],
            contents,
            ["{" + ",".join(map(repr, vector)) + "}" for vector in vectors],
        )
        return True


def shortened(query: str) -> str:
    """A question of a bounded length. Pure."""
    if len(query) <= MOST_QUERY:
        return query
    half = MOST_QUERY // 2
    return f"{query[: half - 1]} {query[-half:]}"
