"""What people are told of how long things are kept is what is done."""

from __future__ import annotations

import pytest

from app.settings import Settings
from app.sharing import retention_times
from app.worker.retention.batches import OwnedDuty, SharedDuty
from app.worker.retention.duties import duties

DAY = 24 * 3600.0
KINDS = {
    "conversations": "thread_idle_seconds",
    "message_pieces": "delta_retention_seconds",
    "events": "event_retention_seconds",
    "runs": "run_retention_seconds",
    "checkpoints": "checkpoint_retention_seconds",
    "usage": "usage_retention_seconds",
    "audit": "audit_retention_seconds",
}
DUTIES = {"conversations": "idle_threads"}
kinds = pytest.mark.parametrize("kind", list(KINDS))


def times_of(settings: Settings, kind: str) -> list[float]:
    """The times by which a kind's duty finds what is due."""
    named = DUTIES.get(kind, kind)
    return [
        each.after[0]
        for each in duties(settings)
        if isinstance(each, OwnedDuty | SharedDuty) and each.kind == named
    ]


class TestWhatPeopleAreTold:
    @kinds
    def test_is_when_it_goes(self, kind: str) -> None:
        settings = Settings.model_validate({KINDS[kind]: 100 * DAY})
        told = retention_times(settings)[kind]
        (done,) = times_of(settings, kind)
        assert told == 100 * DAY
        # A thread is looked at once a day, not at every turn's end.
        assert done - told == (DAY if kind == "checkpoints" else 0)

    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "message_pieces"])
    def test_is_nothing_where_it_stays_for_ever(self, kind: str) -> None:
        settings = Settings.model_validate({KINDS[kind]: 0})
        assert retention_times(settings)[kind] is None
        assert times_of(settings, kind) == []

    def test_leaves_out_no_kind(self) -> None:
        told = retention_times(Settings.model_validate({}))
        assert set(told) == {*KINDS, "approvals", "memories", "connections"}
