"""The models that runs can be made with, to be mentioned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.mentions.matching import best
from app.mentions.refs import Kind, Ref
from app.mentions.sources import Found, SourceFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    from tenancy.principal import Owner


class ModelSource:
    """Models of the service's pools. ``names`` tells them at once."""

    source = "models"
    provider = "stoa"
    kind: Kind = "model"
    display_name = "Models"

    def __init__(self, names: Callable[[], Iterable[str]]) -> None:
        self._names = names

    async def find(
        self,
        owner: Owner,  # noqa: ARG002 - they are the same for everybody
        query: str,
        limit: int,
        scope: UUID | None,
    ) -> Sequence[Found]:
        """Those whose name fits."""
        if scope is not None:
            raise SourceFailed("unsupported_scope")
        chosen = best(query, self._names(), lambda name: [name], limit)
        return [Found(Ref("model", name), name) for name in chosen]
