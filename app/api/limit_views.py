"""From what is known about a person's limits to what they are shown. Pure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from tenancy.scheduler.limits import RULES
from tenancy.scheduler.own import MOST_LISTED, LimitUse

if TYPE_CHECKING:
    from tenancy.scheduler.own import ModelUse, OwnStanding, WaitingCall, WaitingRun
    from tenancy.scheduler.standing import Places

Why = Literal["queue", "own_limit", "thread", "scheduled", "model_unavailable", "suspended"]

_NOT_COUNTED = LimitUse()


def startable(own: OwnStanding) -> list[WaitingRun]:
    """The runs that wait for nothing but their turn, in the order in which they are begun."""
    heads = [run for run in own.runs if not (run.scheduled or run.behind)]
    most = own.limits.get("running")
    if _is_suspended(own):
        return []
    return heads if most is None else heads[: max(0, int(most) - own.running)]


def limits_document(
    own: OwnStanding, places: Places, *, streams: int, model: str
) -> dict[str, Any]:
    """What ``/me/limits`` answers.

    Args:
        own: what the person's own rows say.
        places: of the runs that are ``startable``, and of their calls.
        streams: how many streams they have open in this process.
        model: the default model, which runs are supposed to call.
    """
    return {
        "plan": own.plan,
        "weight": own.limits["weight"],
        "limits": _limits(own, streams, model),
        "runs": {"running": own.running, "queued": own.queued, "scheduled": own.scheduled},
        "waiting": [
            *(_waiting_call(own, call, places) for call in own.calls),
            *_waiting_runs(own, places, model),
        ],
        "models": [_model(each, places.in_use.get(each.model, 0)) for each in own.models],
    }


def _limits(own: OwnStanding, streams: int, model: str) -> list[dict[str, Any]]:
    counted = {
        **own.used,
        "seats": LimitUse(max((each.mine for each in own.models), default=0)),
        "running": LimitUse(own.running),
        "queued": LimitUse(own.queued + own.scheduled),
        "streams": LimitUse(streams),
    }
    in_force = {**own.limits, "seats": _most_seats(own, _named(own, model))}
    return [
        _limit(name, in_force.get(name), counted.get(name, _NOT_COUNTED))
        for name in RULES
        if name != "weight"
    ]


def _limit(name: str, limit: float | None, use: LimitUse) -> dict[str, Any]:
    is_open = limit is None or use.used is None
    return {
        "name": name,
        "unit": RULES[name].unit,
        "limit": limit,
        "used": use.used,
        "remaining": None if is_open else max(0, limit - use.used),  # type: ignore[operator]
        "window_seconds": use.window_seconds,
        "resets_at": use.resets_at,
    }


def _waiting_runs(own: OwnStanding, places: Places, model: str) -> list[dict[str, Any]]:
    default = _named(own, model)
    next_ones = [run.run_id for run in startable(own)]
    place_of = dict(zip(next_ones, places.runs, strict=False))
    waiting = []
    for run in own.runs[: MOST_LISTED - len(own.calls)]:
        place = place_of.get(run.run_id)
        why = _why_run(own, run, default, is_next=run.run_id in next_ones)
        waiting.append(
            {
                "run_id": run.run_id,
                "thread_id": run.thread_id,
                "waits_for": "start",
                "since": run.since,
                "due_at": run.due_at,
                "place": place,
                "expected_wait_seconds": _expected(place, default),
                "why": why,
            }
        )
    return waiting


def _why_run(own: OwnStanding, run: WaitingRun, default: ModelUse | None, *, is_next: bool) -> Why:
    if _is_suspended(own):
        return "suspended"
    if run.scheduled:
        return "scheduled"
    if run.behind:
        return "thread"
    if not is_next:
        return "own_limit"
    return "queue" if default is None or _is_open(default) else "model_unavailable"


def _waiting_call(own: OwnStanding, call: WaitingCall, places: Places) -> dict[str, Any]:
    model = _named(own, call.model)
    why = _why_call(own, model)
    place = None if why in ("own_limit", "suspended") else places.calls.get(call.call_id)
    return {
        "run_id": call.run_id,
        "thread_id": call.thread_id,
        "waits_for": "model",
        "since": call.since,
        "due_at": None,
        "place": place,
        "expected_wait_seconds": _expected(place, model),
        "why": why,
    }


def _why_call(own: OwnStanding, model: ModelUse | None) -> Why:
    most = _most_seats(own, model)
    if most == 0:
        return "suspended"
    if model is None or not _is_open(model):
        return "model_unavailable"
    return "own_limit" if most is not None and model.mine >= most else "queue"


def _expected(place: int | None, model: ModelUse | None) -> float | None:
    """As many calls as there are seats end in the time of one."""
    if place is None or model is None or model.call_seconds is None or not _is_open(model):
        return None
    return round(math.ceil(place / model.capacity) * model.call_seconds, 1)


def _model(model: ModelUse, in_use: int) -> dict[str, Any]:
    in_use = max(in_use, model.mine)  # looked at a moment apart
    return {
        "model": model.model,
        "capacity": model.capacity,
        "in_use": in_use,
        "mine": model.mine,
        "share": round(model.mine / in_use, 4) if in_use else 0,
        "state": model.state,
    }


def _most_seats(own: OwnStanding, model: ModelUse | None) -> float | None:
    """Unless said otherwise, one seat is left for somebody else (``dispatch.terms_of``)."""
    said = own.limits.get("seats")
    if said is not None or model is None:
        return said
    return max(1, model.capacity - 1)


def _named(own: OwnStanding, name: str) -> ModelUse | None:
    return next((model for model in own.models if model.model == name), None)


def _is_open(model: ModelUse) -> bool:
    return model.state == "open" and model.capacity > 0


def _is_suspended(own: OwnStanding) -> bool:
    return own.suspended or own.limits.get("running") == 0
