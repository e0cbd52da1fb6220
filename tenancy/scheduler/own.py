"""What a person's own rows say about their limits at one moment: what is used, what waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner
    from tenancy.scheduler.limits import Limits

MOST_LISTED = 100
"""How many of a person's waiting runs are told one by one: the first ones."""

ModelState = Literal["open", "failing", "removed"]

_READ = "SELECT tenant.read_standing($1, $2, $3)"


@dataclass(frozen=True, slots=True)
class LimitUse:
    """What is used of a limit, where that is counted in the database. Times as text, in UTC."""

    used: float | None = None
    window_seconds: int | None = None
    resets_at: str | None = None


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that waits to begin."""

    run_id: str
    thread_id: str
    scheduled: bool
    """It is due later, at ``due_at``."""
    behind: bool
    """Another one of its thread comes first."""
    due_at: str | None
    since: str


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A model call that waits for a seat, of a run that has begun."""

    call_id: str
    model: str
    run_id: str
    thread_id: str
    since: str


@dataclass(frozen=True, slots=True)
class ModelUse:
    """A model: what of it can be had, and how many of the person's calls are in flight."""

    model: str
    capacity: int
    state: ModelState
    call_seconds: float | None
    """How long a call of anybody's takes on average, where that is known."""
    mine: int


@dataclass(frozen=True, slots=True)
class OwnStanding:
    """A person's limits, what they use of them, and what of theirs waits."""

    plan: str | None
    suspended: bool
    limits: Limits
    """Every limit that is in force."""
    used: Mapping[str, LimitUse]
    running: int
    queued: int
    scheduled: int
    due_in_seconds: float | None
    """When the next scheduled run is due."""
    runs: tuple[WaitingRun, ...]
    """Those that are due, in the order in which they are begun, then those that are scheduled."""
    calls: tuple[WaitingCall, ...]
    models: tuple[ModelUse, ...]


async def read_standing(
    database: TenantDatabase, owner: Owner, defaults: Mapping[str, object]
) -> OwnStanding:
    """Look at a person's own rows. ``defaults`` are the service's limits.

    Raises:
        DatabaseUnavailable: Postgres cannot be reached.
    """
    ((found,),) = await database.call(owner, _READ, dict(defaults), MOST_LISTED)
    return _standing(found)


def _standing(found: Mapping[str, Any]) -> OwnStanding:
    own = {
        **found,
        "used": {name: LimitUse(**use) for name, use in found["used"].items()},
        "runs": tuple(WaitingRun(**run) for run in found["runs"]),
        "calls": tuple(WaitingCall(**call) for call in found["calls"]),
        "models": tuple(ModelUse(**model) for model in found["models"]),
    }
    return OwnStanding(**own)
