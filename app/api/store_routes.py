"""LangGraph's store over HTTP: items of the person who asks, and of nobody else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from app.api.answers import bounded_list, json_answer, json_bytes_answer, state_answer
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.errors import field_errors
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.api.refusals import InvalidFields
from app.api.store_schemas import (
    FoundItems,
    ItemDelete,
    ItemPut,
    ItemQuery,
    ItemSearch,
    ItemView,
    Namespace,
    NamespaceList,
    NamespaceSearch,
)
from tenancy.checkpoints.store import TenantStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from langgraph.store.base import Item, SearchItem

    from app.api.services import Services
    from tenancy.principal import Principal

router = APIRouter(tags=["store"], dependencies=[IN_TURN])

_AT_ONCE = 50
"""Items that are read at once: each may be as large as a body."""
_NAMESPACE: TypeAdapter[list[str]] = TypeAdapter(Namespace)
_EXAMPLE = {"namespace": ["notes", "travel"], "key": "lisbon"}


@router.put(
    "/store/items",
    operation_id="put_item",
    status_code=204,
    response_class=Response,
    responses=problems(413, 415),
    openapi_extra=body_of(ItemPut, {**_EXAMPLE, "value": {"text": "Take the early train."}}),
)
async def put_item(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ItemPut, Depends(json_body(ItemPut))],
) -> Response:
    """Keep an item. In the namespace `["memories"]` it is a memory, and has to look like one."""
    store = _store(services, principal)
    await store.aput(tuple(body.namespace), body.key, body.value, ttl=body.ttl)
    return Response(status_code=204)


@router.get(
    "/store/items",
    operation_id="get_item",
    response_model=ItemView | None,
    responses=problems(),
)
async def get_item(
    principal: PrincipalDep, services: ServicesDep, query: Annotated[ItemQuery, Query()]
) -> Response:
    """Return an item, or null. Its time begins anew, unless `refresh_ttl` is false."""
    try:
        namespace = _NAMESPACE.validate_python(query.namespace.split("."))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        errors = [{**each, "loc": ("namespace",)} for each in found]
        raise InvalidFields(field_errors(errors, prefix=("query",))) from None
    item = await _store(services, principal).aget(
        tuple(namespace), query.key, refresh_ttl=query.refresh_ttl
    )
    return await state_answer(principal.user_id, None if item is None else _json(item))


@router.delete(
    "/store/items",
    operation_id="delete_item",
    status_code=204,
    response_class=Response,
    responses=problems(413, 415),
    openapi_extra=body_of(ItemDelete, _EXAMPLE),
)
async def delete_item(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ItemDelete, Depends(json_body(ItemDelete))],
) -> Response:
    """Delete an item. One that is not there is deleted already."""
    await _store(services, principal).adelete(tuple(body.namespace), body.key)
    return Response(status_code=204)


@router.post(
    "/store/items/search",
    operation_id="search_items",
    response_model=FoundItems,
    responses=problems(413, 415),
    openapi_extra=body_of(ItemSearch, {"namespace_prefix": ["notes"], "query": "early train"}),
)
async def search_items(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[ItemSearch, Depends(json_body(ItemSearch))],
) -> Response:
    """List items below a namespace. A query is looked for by its words; no model is asked.

    A list that would be too large ends early: `X-Pagination-Next` then says where to go on.
    """
    found = _found(_store(services, principal), body)
    items, count = await bounded_list(principal.user_id, found)
    is_cut = await anext(found, None) is not None
    await found.aclose()
    headers = {"X-Pagination-Next": str(body.offset + count)} if is_cut else None
    return json_bytes_answer(b'{"items":' + items + b"}", headers=headers)


@router.post(
    "/store/namespaces",
    operation_id="list_namespaces",
    response_model=NamespaceList,
    responses=problems(413, 415),
    openapi_extra=body_of(NamespaceSearch, {"prefix": ["notes"], "max_depth": 2}),
)
async def list_namespaces(
    principal: PrincipalDep,
    services: ServicesDep,
    body: Annotated[NamespaceSearch, Depends(json_body(NamespaceSearch))],
) -> Response:
    """List namespaces that have items."""
    listed = await _store(services, principal).alist_namespaces(
        prefix=tuple(body.prefix) if body.prefix else None,
        suffix=tuple(body.suffix) if body.suffix else None,
        max_depth=body.max_depth,
        limit=body.limit,
        offset=body.offset,
    )
    return json_answer({"namespaces": [list(namespace) for namespace in listed]})


def _store(services: Services, principal: Principal) -> TenantStore:
    return TenantStore(services.checkpoints, principal.user_id, limits=services.limits)


async def _found(store: TenantStore, body: ItemSearch) -> AsyncGenerator[dict[str, Any]]:
    for start in range(0, body.limit, _AT_ONCE):
        wanted = min(_AT_ONCE, body.limit - start)
        items: list[SearchItem] = await store.asearch(
            tuple(body.namespace_prefix),
            query=body.query or None,
            filter=body.filter,
            limit=wanted,
            offset=body.offset + start,
            refresh_ttl=body.refresh_ttl,
        )
        for item in items:
            yield {**_json(item), "score": item.score}
        if len(items) < wanted:
            return


def _json(item: Item) -> dict[str, Any]:
    return {
        "namespace": list(item.namespace),
        "key": item.key,
        "value": item.value,
        "created_at": item.created_at.isoformat(),
        "updated_at": item.updated_at.isoformat(),
    }
