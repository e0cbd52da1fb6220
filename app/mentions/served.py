"""The models that runs can be made with, to be mentioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.mentions.matching import best
from app.mentions.refs import Kind, Ref
from app.mentions.sources import Found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from app.mentions.sources import Asked


class ModelSource:
    """Models of the service's pools. ``names`` tells them at once."""

    source = "models"
    provider = "stoa"
    kind: Kind = "model"
    display_name = "Models"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    async def find(self, asked: Asked) -> Sequence[Found]:
        """Those whose name fits."""
        chosen = best(asked.query, self._names(), lambda name: [name], asked.limit)
        return [Found(Ref("model", name), name) for name in chosen]
