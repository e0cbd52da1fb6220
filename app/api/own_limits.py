"""A person's limits as they stand now: their own rows, and their places among everybody's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.api.limit_views import limits_document, startable
from app.sharing import full_name
from tenancy.scheduler.own import read_standing

if TYPE_CHECKING:
    from app.api.services import Services
    from tenancy.principal import Principal
    from tenancy.scheduler.own import OwnStanding


async def own_limits(
    services: Services, principal: Principal
) -> tuple[dict[str, Any], OwnStanding]:
    """What ``/me/limits`` answers, and what it was made of.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    model = full_name(services.settings.model)
    own = await read_standing(services.database, principal, services.limits)
    places = await services.standing.places(
        principal.user_id, model, len(startable(own)), len(own.calls)
    )
    streams = services.streams.count(principal.user_id)
    return limits_document(own, places, streams=streams, model=model), own
