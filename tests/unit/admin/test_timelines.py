"""What an operator's timeline reads from a checkpoint's id."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from langgraph.checkpoint.base import id as library
from langgraph.checkpoint.base.id import uuid6

from app.admin.timelines import step_of


class TestAStep:
    @pytest.mark.parametrize("number", [-2, -1, 0, 1, 8191])
    def test_is_in_the_id_with_its_time(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        # Else an id that was seen before, by whom ever it was made, may be later than now.
        monkeypatch.setattr(library, "_last_v6_timestamp", None)
        before = datetime.now(UTC)
        step = step_of(str(uuid6(clock_seq=number)))
        assert step.step == number
        assert before - timedelta(milliseconds=1) <= step.at
        assert step.at <= datetime.now(UTC) + timedelta(milliseconds=1)
