"""Checkpoints keep their order on hosts whose clocks don't agree."""

from __future__ import annotations

import time
from uuid import UUID

import pytest
from langgraph.checkpoint.base import id as library
from langgraph.checkpoint.base.id import uuid6

from tenancy.checkpoints.clock import observe

AN_HOUR = 3600 * 10**9
HALF_AN_HOUR_OF_AN_ID = (1800 * 10**7 >> 12) << 80
"""As the upper bits of an id have it, which are those of a time in tenths of a microsecond."""


@pytest.fixture
def behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """This host's clock is an hour behind the one that made the newest checkpoint."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() - AN_HOUR)
    monkeypatch.setattr(library, "_last_v6_timestamp", None)


class TestAHostWhoseClockIsBehind:
    def test_makes_ids_that_come_after_what_it_has_read(self, behind: None) -> None:
        before = uuid6()
        head = str(UUID(int=before.int + HALF_AN_HOUR_OF_AN_ID))
        assert str(uuid6()) < head
        observe(head)
        made = [str(uuid6(clock_seq=step)) for step in range(100)]
        assert made == sorted(made)
        assert made[0] > head

    @pytest.mark.parametrize("odd", ["", "no id", "00000000-0000-4000-8000-000000000000", "f" * 32])
    def test_takes_nothing_from_an_id_without_a_time(self, behind: None, odd: str) -> None:
        observe(odd)
        assert library._last_v6_timestamp is None

    def test_is_not_set_back_by_an_older_one(self, behind: None) -> None:
        old = str(uuid6())
        new = str(uuid6())
        observe(old)
        assert str(uuid6()) > new
