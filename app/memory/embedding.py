"""Embeddings of texts, from a model of Ollama's: calls of the run in whose context they are made.

Each takes a seat like any other model call (``app.models``), and is charged to the run's user.
"""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING

import ollama

from app.models.clients import patch_clients
from app.models.errors import ModelBusy, ModelError, ModelMalformed
from app.sharing import full_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    Vector = Sequence[float]

REST_SECONDS = 15.0
"""After a failure nothing is asked for so long: a dead model holds up one turn, not each."""
MOST_NUMBERS = 4096
"""Of one embedding; the room for them in the store is counted by it."""


class Embedder:
    """One embedding model, for all runs of a worker."""

    def __init__(self, model: str, *, rest_seconds: float = REST_SECONDS) -> None:
        patch_clients()
        self.model = full_name(model)
        self._client = ollama.AsyncClient()
        self._rest_seconds = rest_seconds
        self._rests_until = -math.inf

    async def embed(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        """The embeddings of texts, each of length 1, within so many seconds.

        Raises:
            ModelError: there are none, or not in time, or the model failed a moment ago.
            LeaseLost, TokenBudgetExhausted, DatabaseUnavailable: there is no seat for the call.
        """
        loop = asyncio.get_running_loop()
        if loop.time() < self._rests_until:
            raise ModelBusy
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.embed(self.model, texts, truncate=True)
            return read_vectors(answer.embeddings, len(texts))
        except (ModelError, TimeoutError, ValueError, ollama.ResponseError) as error:
            self._rests_until = loop.time() + self._rest_seconds
            if isinstance(error, ModelError):
                raise
            raise ModelMalformed if isinstance(error, ValueError) else ModelBusy from error


def read_vectors(given: Sequence[Sequence[float]], count: int) -> list[Vector]:
    """So many embeddings, scaled to length 1, so that a product of two is their cosine. Pure.

    Raises:
        ModelMalformed: they are not that many, or are no directions.
    """
    if len(given) != count or len({len(each) for each in given}) != 1:
        raise ModelMalformed
    return [_unit(each) for each in given]


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    if not 0 < length < math.inf or len(vector) > MOST_NUMBERS:  # also where one is no number
        raise ModelMalformed
    return [each / length for each in vector]
