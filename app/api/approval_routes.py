"""What waits for one's word, over all threads; and giving it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from app.api.answers import bounded_list, json_answer, json_bytes_answer
from app.api.approval_schemas import (
    APPROVE_EXAMPLE,
    ApprovalPage,
    ApprovalQuery,
    ApprovalView,
    DecisionBody,
)
from app.api.approval_views import approval_json
from app.api.deciding import decide_and_announce
from app.api.dependencies import IN_TURN, PrincipalDep, ServicesDep
from app.api.idempotency import IdempotencyDep
from app.api.json_body import json_body
from app.api.openapi import body_of, problems
from app.runs import approvals
from app.runs.approvals import Approval, ApprovalFilter
from app.runs.deciding import Decision

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Any

router = APIRouter(tags=["approvals"], dependencies=[IN_TURN])


@router.get(
    "/approvals",
    operation_id="list_approvals",
    response_model=list[ApprovalView],
    responses=problems(),
)
async def list_approvals(
    principal: PrincipalDep, services: ServicesDep, page: Annotated[ApprovalPage, Query()]
) -> Response:
    """List what waits for one's word, newest first; or with another `state`, what waited for it.

    The list ends early once it is large; `X-Pagination-Next` says where it goes on.
    """
    wanted = _filter(page)
    async with services.database.reading(principal) as tx:
        total = await approvals.count_approvals(tx, wanted)
        found = await approvals.find_approvals(tx, wanted, limit=page.limit, offset=page.offset)
    documents = _documents(approvals.read_approvals(services.database, principal, list(found)))
    async with aclosing(documents):
        body, listed = await bounded_list(principal.user_id, documents)
    headers = {"X-Pagination-Total": str(total)}
    if found and page.offset + listed < total:
        headers["X-Pagination-Next"] = str(page.offset + listed)
    return json_bytes_answer(body, headers=headers)


@router.get(
    "/approvals/count",
    operation_id="count_approvals",
    response_model=int,
    responses=problems(),
)
async def count_approvals(
    principal: PrincipalDep, services: ServicesDep, query: Annotated[ApprovalQuery, Query()]
) -> Response:
    """Count what waits for one's word; or with another `state`, what waited for it."""
    async with services.database.reading(principal) as tx:
        return json_answer(await approvals.count_approvals(tx, _filter(query)))


@router.get(
    "/approvals/{approval_id}",
    operation_id="get_approval",
    response_model=ApprovalView,
    responses=problems(404),
)
async def get_approval(
    approval_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Response:
    """Return what waits for one's word, or what became of it."""
    async with services.database.reading(principal) as tx:
        return json_answer(approval_json(await approvals.find_approval(tx, approval_id)))


async def _own_approval(
    approval_id: UUID, principal: PrincipalDep, services: ServicesDep
) -> Approval:
    """The approval of a route, which is the caller's own.

    Raises:
        ApprovalNotFound: it is somebody else's, or there is none.
    """
    async with services.database.reading(principal) as tx:
        return await approvals.find_approval(tx, approval_id)


OwnApproval = Annotated[Approval, Depends(_own_approval)]


@router.post(
    "/approvals/{approval_id}",
    operation_id="decide_approval",
    response_model=ApprovalView,
    responses=problems(404, 409, 413, 415),
    openapi_extra=body_of(DecisionBody, APPROVE_EXAMPLE),
)
async def decide_approval(
    approval: OwnApproval,  # first: nothing of a stranger's body is looked at
    principal: PrincipalDep,
    services: ServicesDep,
    idempotency: IdempotencyDep,
    body: Annotated[DecisionBody, Depends(json_body(DecisionBody))],
) -> Response:
    """Decide. With the last open question of a run, the run goes on.

    Of two who decide at once, one does: the other is answered 409 `approval_closed`, with the
    question as it stands in the problem's `approval`.
    """
    decided = await decide_and_announce(
        services,
        principal,
        approval.run_id,
        [_decision(approval, body)],
        idempotency=idempotency.with_body(),
    )
    return json_answer(approval_json(decided.approvals[0]))


def _filter(query: ApprovalQuery) -> ApprovalFilter:
    return ApprovalFilter(
        state=None if query.state == "all" else query.state,
        kind=query.kind,
        thread_id=query.thread_id,
        run_id=query.run_id,
        server=query.server,
    )


async def _documents(found: AsyncGenerator[Approval, None]) -> AsyncGenerator[dict[str, Any], None]:
    async with aclosing(found):
        async for approval in found:
            yield approval_json(approval)


def _decision(approval: Approval, body: DecisionBody) -> Decision:
    seen, replies = body.arguments_sha256, body.replies or {}
    given = {key: each.model_dump(exclude_none=True) for key, each in replies.items()}
    return Decision(
        approval.approval_id,
        body.decision,
        arguments_sha256=None if seen is None else bytes.fromhex(seen),
        arguments=body.arguments,
        reason=body.reason,
        replies=None if body.replies is None else given,
        scope=body.scope or "call",
    )
