"""A person's decisions: committed, then told to whoever has to know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from app import faults
from app.runs.deciding import Decided, decide
from app.runs.tail import run_key, thread_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from app.api.services import Services
    from app.runs.deciding import Decision
    from app.runs.resuming import Resume
    from app.runs.runs import IdempotencyKey
    from tenancy.principal import Principal


log = structlog.get_logger(__name__)


async def decide_and_announce(
    services: Services,
    principal: Principal,
    run_id: UUID,
    decisions: Sequence[Decision],
    *,
    resume: Resume | None = None,
    idempotency: IdempotencyKey | None = None,
) -> Decided:
    """Decide on what a run asks, all or none; accepted on return, whatever dies after it.

    Raises:
        Those of :func:`app.runs.deciding.decide`.
    """
    decided = await decide(
        services.database, principal, run_id, decisions, resume=resume, idempotency=idempotency
    )
    faults.reach("decision.accepted")
    if decided.is_new:
        announce_decided(services, principal, decided)
    return decided


def announce_decided(services: Services, principal: Principal, decided: Decided) -> None:
    """Tell the person's feeds; and where the run goes on, workers and whoever follows it."""
    key = run_key(principal.user_id, decided.run.run_id)
    services.announcer.approval_changed(key)
    if decided.resumed:
        log.info("run goes on", run_id=str(decided.run.run_id))
        services.announcer.run_queued()
        services.announcer.run_changed(key)
        services.announcer.run_changed(thread_key(principal.user_id, decided.run.thread_id))
