"""Who may leave, and who may ask how that goes on: also those for whom nothing else is done."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated
from uuid import NAMESPACE_URL, uuid5

from fastapi import Depends, Request

from app.api.dependencies import ServicesDep
from app.api.json_body import parse_body, read_bounded
from app.api.refusals import InvalidFields
from app.api.schemas import StrictModel
from tenancy.principal import Identity, UserId

_MOST_BYTES = 1024


class NoFields(StrictModel):
    """A body that says nothing; there need not be one."""


async def _witness(request: Request, services: ServicesDep) -> Identity:
    """Whoever brings a valid assertion. They are not signed in: that would make them somebody."""
    return await services.verifier.verify(request.scope["headers"])


WitnessDep = Annotated[Identity, Depends(_witness)]


async def _witnesses_turn(witness: WitnessDep, services: ServicesDep) -> AsyncIterator[None]:
    """One of few turns, as users have them, of somebody who may be no user."""
    name = f"{witness.issuer}\n{witness.subject}"
    async with services.turns.turn(UserId(uuid5(NAMESPACE_URL, name))):
        yield


IN_WITNESS_TURN = Depends(_witnesses_turn, scope="function")


async def _says_nothing(request: Request) -> None:
    if said := request.query_params.keys():
        raise InvalidFields(
            [{"loc": ["query", name], "msg": "Extra inputs are not permitted"} for name in said]
        )
    parse_body(await read_bounded(request, _MOST_BYTES), NoFields)


SAYS_NOTHING = Depends(_says_nothing)
"""For what cannot be taken back, after whoever asks is known: a body may be there, if nothing is in
it, and no field of the address, that would seem to mean something."""
