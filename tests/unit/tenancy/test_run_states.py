"""The life of a run, as the code says it."""

from __future__ import annotations

import pytest

from tenancy.run_states import (
    FIRST,
    OPEN,
    TERMINAL,
    TRANSITIONS,
    RunState,
    may_become,
    state_diagram,
    transition_statement,
)


def reachable(begin: RunState) -> set[RunState]:
    """Every state that a run in ``begin`` may still come to."""
    seen: set[RunState] = set()
    ahead = [begin]
    while ahead:
        nexts = set(TRANSITIONS[ahead.pop()]) - seen
        seen |= nexts
        ahead += nexts
    return seen


class TestARunsLife:
    def test_has_a_rule_for_each_state(self) -> None:
        assert set(TRANSITIONS) == set(RunState)
        assert not OPEN & TERMINAL

    def test_can_come_to_each_state(self) -> None:
        assert reachable(FIRST) | {FIRST} == set(RunState)

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_can_end_in_each_way_from_wherever_it_is(self, state: RunState) -> None:
        assert reachable(state) >= TERMINAL

    @pytest.mark.parametrize("state", sorted(OPEN))
    def test_can_be_cancelled_wherever_it_is(self, state: RunState) -> None:
        assert may_become(state, RunState.CANCELLED)

    @pytest.mark.parametrize("state", sorted(TERMINAL))
    def test_goes_nowhere_once_it_has_ended(self, state: RunState) -> None:
        assert not any(may_become(state, after) for after in RunState)

    def test_begins_to_run_from_the_queue_only(self) -> None:
        assert [s for s in RunState if may_become(s, RunState.RUNNING)] == [RunState.PENDING]

    @pytest.mark.parametrize("state", RunState)
    def test_has_no_step_that_leads_nowhere(self, state: RunState) -> None:
        assert not may_become(state, state)


class TestWhatIsMadeOfIt:
    def test_tells_the_database_each_step_and_no_other(self) -> None:
        statement = transition_statement()
        for before in RunState:
            for after in RunState:
                said = f"('{before}', '{after}')" in statement
                assert said == may_become(before, after), (before, after)

    def test_draws_each_step_with_its_reason(self) -> None:
        drawing = state_diagram()
        assert f"[*] --> {FIRST}" in drawing
        for before, nexts in TRANSITIONS.items():
            for after, why in nexts.items():
                assert f"    {before} --> {after}: {why}" in drawing
                assert f"| `{before}` | `{after}` | {why} |" in drawing
        for state in TERMINAL:
            assert f"    {state} --> [*]" in drawing
