"""A server that fails is tried again later and later, and forgiven when it answers."""

from __future__ import annotations

import pytest

from app.tools.pool.breaker import (
    MAX_REST_SECONDS,
    PAUSE_SECONDS,
    REST_AFTER,
    REST_SECONDS,
    Breaker,
)


def failed(times: int, at: float = 100.0) -> Breaker:
    breaker = Breaker()
    for _ in range(times):
        breaker.failed(at)
    return breaker


class TestBreaker:
    def test_nothing_waits_for_a_server_that_works(self) -> None:
        assert Breaker().wait_seconds(0) == 0
        assert not Breaker().rests(0)

    def test_the_first_failures_cost_a_pause_that_grows(self) -> None:
        waits = [failed(times).wait_seconds(100.0) for times in range(1, REST_AFTER)]
        assert waits == pytest.approx([PAUSE_SECONDS * 2**n for n in range(REST_AFTER - 1)])
        assert not failed(REST_AFTER - 1).rests(100.0)

    def test_failures_in_a_row_open_it_for_longer_and_longer_up_to_a_bound(self) -> None:
        waits = [failed(REST_AFTER + n).wait_seconds(100.0) for n in range(4)]
        assert waits == [REST_SECONDS * 2**n for n in range(4)]
        assert failed(1000).wait_seconds(100.0) == MAX_REST_SECONDS

    def test_one_try_is_allowed_when_its_rest_is_over(self) -> None:
        breaker = failed(REST_AFTER)
        assert breaker.rests(100.0 + REST_SECONDS - 0.1)
        assert not breaker.rests(100.0 + REST_SECONDS)
        assert breaker.wait_seconds(100.0 + REST_SECONDS) == 0

    def test_a_try_that_fails_opens_it_again_and_one_that_works_closes_it(self) -> None:
        breaker = failed(REST_AFTER)
        breaker.failed(200.0)
        assert breaker.rests(200.0 + REST_SECONDS)
        breaker.worked()
        assert not breaker.rests(200.0)
        assert breaker.wait_seconds(200.0) == 0

    def test_it_need_not_be_kept_for_ever(self) -> None:
        assert Breaker().is_over(0)
        assert not failed(1).is_over(101.0)
        assert failed(1).is_over(101.0 + 2 * MAX_REST_SECONDS)


class TestAServerThatEndedWhenItWasAskedForMoreThanTools:
    def test_is_tried_again_at_once_for_its_tools_alone(self) -> None:
        breaker = Breaker()
        breaker.failed_beside(100.0)
        assert (breaker.tools_only, breaker.wait_seconds(100.0)) == (True, 0.0)

    def test_is_remembered_for_a_while_though_it_works(self) -> None:
        breaker = Breaker()
        breaker.failed_beside(100.0)
        breaker.worked()
        assert not breaker.is_over(100.0 + MAX_REST_SECONDS)
        assert breaker.is_over(101.0 + 2 * MAX_REST_SECONDS)
