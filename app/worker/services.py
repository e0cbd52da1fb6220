"""What every attempt of a worker works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.agent.graphs import GraphCatalogue
    from app.models.access import ModelAccess
    from app.models.catalogue.looking import ServedModels
    from app.worker.equip import Outfitter
    from app.worker.mentioned import MentionReader
    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.signals import Announcer
    from tenancy.database.tenant import TenantDatabase
    from tenancy.scheduler.limits import Limits


@dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """How long and how often a run may be tried, and how many steps it may take."""

    run_seconds: float
    max_attempts: int
    recursion_limit: int
    approval_seconds: float
    """How long a person has to decide what a run asks of them."""


@dataclass(frozen=True, slots=True)
class ExecutionServices:
    """One worker's."""

    database: TenantDatabase
    pool: CheckpointPool
    graphs: GraphCatalogue
    models: ModelAccess
    served: ServedModels
    """What the models can do."""
    announcer: Announcer
    limits: ExecutionLimits
    allowed: Limits
    """What a person may use for whom no other limits were set."""
    outfitter: Outfitter
    mentions: MentionReader
    agent_version: str
    """Of the built-in graph."""
