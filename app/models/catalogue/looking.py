"""What every pool's server says of its model: asked of all at once, by one look for all who ask."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

from app.models.catalogue.flight import Refreshed
from app.models.catalogue.offered import prompt_tokens, reads_images
from app.models.catalogue.served import ServedModel, look_at_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from app.models.catalogue.served import Look
    from app.sharing import ChatModel

FRESH_SECONDS = 30.0


class ServedModels:
    """How the models of all pools look from here. A server that is away is a look, not an error."""

    def __init__(self, models: Iterable[ChatModel]) -> None:
        self._pools = tuple(pool for model in models for pool in model.pools)
        self._known: Mapping[str, ServedModel] = {}
        self._looks: Refreshed[Mapping[str, Look]] = Refreshed(
            "served models", self._look, FRESH_SECONDS
        )

    @property
    def looks(self) -> Mapping[str, Look]:
        """The newest look at each pool, at once; none before the first. An old one is renewed."""
        return self._looks.read() or {}

    @property
    def known(self) -> Mapping[str, ServedModel]:
        """What each pool's server has said of its model, though it be away now."""
        return self._known

    async def first_look(self) -> None:
        """Return once everything was looked at, if it was not before; an old look is renewed."""
        if self._looks.read() is None:
            with suppress(Exception):  # it is logged, and tried again
                await self._looks.refresh()

    async def reads_images(self, model: ChatModel) -> bool:
        """Whether a model may be shown images: as the settings say, or else all its servers."""
        if model.images is None:
            await self.first_look()
        return reads_images(model, self._known)

    async def prompt_tokens(self, model: ChatModel) -> int:
        """What a model's window leaves for the prompt: as it is pinned, or as it was made."""
        await self.first_look()
        return prompt_tokens(model, self._known)

    async def refresh(self) -> None:
        """Look now."""
        await self._looks.refresh()

    async def aclose(self) -> None:
        """End a look that is under way."""
        await self._looks.aclose()

    async def _look(self) -> Mapping[str, Look]:
        asked: dict[str, set[str]] = defaultdict(set)
        for pool in self._pools:
            asked[pool.url].add(pool.model)
        answers = await asyncio.gather(
            *(look_at_server(url, sorted(models)) for url, models in asked.items())
        )
        of_server = dict(zip(asked, answers, strict=True))
        looks = {pool.pool: of_server[pool.url][pool.model] for pool in self._pools}
        self._known = {
            pool: known for pool, look in looks.items() if (known := self._newest(pool, look))
        }
        return looks

    def _newest(self, pool: str, look: Look) -> ServedModel | None:
        """A server that is away has the model that it had; one that has lost it has it no more."""
        if isinstance(look, ServedModel):
            return look
        return self._known.get(pool) if look == "unreachable" else None
