"""What can be mentioned in a message: searched while a person types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from app.api.answers import json_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.disconnect import while_client_waits
from app.api.json_body import json_body
from app.api.mention_schemas import MentionSearch, MentionsView
from app.api.openapi import body_of, problems
from app.api.refusals import InvalidFields, InvalidSearch
from app.mentions.refs import VERSION
from app.mentions.sources import Asked
from app.runs.threads import require_thread

if TYPE_CHECKING:
    from app.api.services import Services
    from app.mentions.search import Group
    from app.mentions.sources import Found
    from tenancy.principal import Principal

router = APIRouter(tags=["mentions"], dependencies=[IN_TURN])

_read = json_body(MentionSearch)


async def _search(
    request: Request, services: ServicesDep, principal: PrincipalDep
) -> MentionSearch:
    """The body; whatever is wrong with it is 400 on this route.

    Raises:
        InvalidSearch: a field cannot be accepted.
    """
    try:
        return await _read(request, services, principal)
    except InvalidFields as error:
        raise InvalidSearch(error.errors) from None


@router.post(
    "/mentions/search",
    operation_id="search_mentions",
    response_model=MentionsView,
    responses=problems(404, 413, 415, 499),
    openapi_extra=body_of(MentionSearch, {"q": "train", "limit": 5}),
)
async def search_mentions(
    request: Request,
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[MentionSearch, Depends(_search)],
) -> Response:
    """Find what a message may point at: one's own conversations, memories, tools and their like.

    Each source has 1.5 seconds. One that is slow or fails says so in its group's `status`; the
    others' results come all the same. What is wrong with the body is answered 400.
    """
    groups = await while_client_waits(request, _groups(services, principal, body))
    return json_answer({"query": body.q, "groups": [_group_json(each) for each in groups]})


async def _groups(services: Services, principal: Principal, body: MentionSearch) -> list[Group]:
    """What every source has found.

    Raises:
        ThreadNotFound: the scope is no conversation of this person's. No source is asked.
    """
    if body.scope is not None:
        async with services.database.reading(principal) as tx:
            await require_thread(tx, body.scope)
    return await services.mentions.search.find(Asked(principal, body.q, body.limit, body.scope))


def _group_json(group: Group) -> dict[str, Any]:
    source = group.source
    return {
        "source": source.source,
        "provider": source.provider,
        "kind": source.kind,
        "display_name": source.display_name,
        "status": group.status,
        "results": [_found_json(each, source.provider) for each in group.results],
    }


def _found_json(found: Found, provider: str) -> dict[str, Any]:
    return {
        "version": VERSION,
        "ref": str(found.ref),
        "provider": found.offered_by or provider,
        "kind": found.ref.kind,
        "id": found.ref.name,
        "title": found.title,
        "url": found.url,
        "scope": None if found.scope is None else str(found.scope),
    }
