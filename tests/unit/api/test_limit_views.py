"""From what is known about a person's limits to what they are shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from app.api.limit_views import limits_document, startable
from tenancy.scheduler.own import LimitUse, ModelUse, OwnStanding, WaitingCall, WaitingRun
from tenancy.scheduler.standing import Places

MODEL = "smollm2:latest"
OPEN = ModelUse(MODEL, 2, "open", 3.0, 1)


def run(name: str, **fields: Any) -> WaitingRun:
    about = {"scheduled": False, "behind": False, "due_at": None, "since": "then", **fields}
    return WaitingRun(run_id=name, thread_id=f"thread of {name}", **about)


def call(name: str, model: str = MODEL) -> WaitingCall:
    return WaitingCall(name, model, f"run of {name}", f"thread of {name}", "then")


def standing(**fields: Any) -> OwnStanding:
    own = OwnStanding(
        plan=None,
        suspended=False,
        limits={"weight": 1, "running": 4, "queued": 10},
        used={},
        running=0,
        queued=0,
        scheduled=0,
        due_in_seconds=None,
        runs=(),
        calls=(),
        models=(OPEN,),
    )
    return replace(own, **fields)


def shown(own: OwnStanding, *runs: int, in_use: int = 0, **calls: int) -> dict[str, Any]:
    return limits_document(own, Places(runs, calls, {MODEL: in_use}), streams=3, model=MODEL)


def limit(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(each for each in document["limits"] if each["name"] == name)


class TestARunThatWaits:
    def test_is_expected_to_wait_for_as_many_rounds_of_calls_as_come_before_it(self) -> None:
        own = standing(runs=(run("a"), run("b"), run("c")))
        first, second, third = shown(own, 1, 2, 5)["waiting"]
        assert [each["place"] for each in (first, second, third)] == [1, 2, 5]
        waits = [each["expected_wait_seconds"] for each in (first, second, third)]
        assert waits == [3.0, 3.0, 9.0]

    def test_of_a_model_of_which_nothing_is_known_has_a_place_but_no_time(self) -> None:
        for models in ((), (replace(OPEN, call_seconds=None),)):
            (waiting,) = shown(standing(runs=(run("a"),), models=models), 4)["waiting"]
            assert (waiting["why"], waiting["place"]) == ("queue", 4)
            assert waiting["expected_wait_seconds"] is None

    @pytest.mark.parametrize("model", [replace(OPEN, state="failing"), replace(OPEN, capacity=0)])
    def test_for_a_model_that_is_out_says_so(self, model: ModelUse) -> None:
        own = standing(runs=(run("a"),), calls=(call("b"),), models=(model,))
        waiting = shown(own, 1, b=1)["waiting"]
        assert [each["why"] for each in waiting] == ["model_unavailable"] * 2
        assert [each["place"] for each in waiting] == [1, 1]
        assert [each["expected_wait_seconds"] for each in waiting] == [None, None]

    def test_says_the_first_reason_that_keeps_it(self) -> None:
        later = run("later", scheduled=True, due_at="soon")
        runs = (run("a"), run("b", behind=True), run("c"), run("d"), later)
        own = standing(runs=runs, running=2)
        why = ["queue", "thread", "queue", "own_limit", "scheduled"]
        waiting = shown(own, 1, 3)["waiting"]
        assert [each["why"] for each in waiting] == why
        assert [each["place"] for each in waiting] == [1, None, 3, None, None]
        assert [each["due_at"] for each in waiting] == [None, None, None, None, "soon"]
        for suspended in (
            replace(own, suspended=True),
            replace(own, limits={"weight": 1, "running": 0}),
        ):
            assert {each["why"] for each in shown(suspended)["waiting"]} == {"suspended"}

    def test_could_begin_if_neither_its_thread_nor_ones_own_limit_kept_it(self) -> None:
        runs = (run("a"), run("b", behind=True), run("c"), run("d", scheduled=True))
        own = standing(runs=runs)
        assert [each.run_id for each in startable(own)] == ["a", "c"]
        assert [each.run_id for each in startable(replace(own, running=3))] == ["a"]
        assert startable(replace(own, running=5)) == []
        assert startable(replace(own, suspended=True)) == []
        unlimited = replace(own, running=5, limits={"weight": 1, "running": None})
        assert len(startable(unlimited)) == 2

    def test_far_back_waits_for_its_turn_though_no_place_is_told(self) -> None:
        waiting = shown(standing(runs=(run("a"), run("b"))), 7)["waiting"]
        assert [each["why"] for each in waiting] == ["queue", "queue"]
        assert [each["place"] for each in waiting] == [7, None]


class TestACallThatWaits:
    def test_waits_for_the_seats_of_its_own_model(self) -> None:
        other = ModelUse("large:latest", 4, "open", 10.0, 0)
        own = standing(calls=(call("a", "large:latest"),), models=(other, OPEN))
        (waiting,) = shown(own, a=5)["waiting"]
        assert (waiting["waits_for"], waiting["why"]) == ("model", "queue")
        assert waiting["expected_wait_seconds"] == 20.0

    def test_says_when_ones_own_calls_come_first(self) -> None:
        """Of two seats, one person has one: the other is left for somebody else."""
        (waiting,) = shown(standing(calls=(call("a"),)), a=1)["waiting"]
        assert (waiting["why"], waiting["place"]) == ("own_limit", None)
        limits = {"weight": 1, "running": 4, "seats": 2}
        (waiting,) = shown(standing(calls=(call("a"),), limits=limits), a=1)["waiting"]
        assert (waiting["why"], waiting["place"]) == ("queue", 1)
        limits = {"weight": 1, "running": 4, "seats": 0}
        (waiting,) = shown(standing(calls=(call("a"),), limits=limits), a=1)["waiting"]
        assert (waiting["why"], waiting["place"]) == ("suspended", None)

    def test_comes_before_what_has_not_begun(self) -> None:
        own = standing(runs=(run("a"), run("b")), calls=(call("c"),))
        waiting = shown(own, 1, 2, c=1)["waiting"]
        assert [each["run_id"] for each in waiting] == ["run of c", "a", "b"]


class TestALimit:
    def test_that_was_lowered_has_nothing_left(self) -> None:
        used = {"threads": LimitUse(9)}
        own = standing(used=used, limits={"weight": 1, "threads": 5})
        found = limit(shown(own), "threads")
        assert (found["limit"], found["used"], found["remaining"]) == (5, 9, 0)

    def test_that_is_none_is_used_all_the_same(self) -> None:
        used = {"tokens_per_day": LimitUse(9, 86_400, "tomorrow")}
        own = standing(used=used, limits={"weight": 1, "tokens_per_day": None})
        found = limit(shown(own), "tokens_per_day")
        assert (found["limit"], found["used"], found["remaining"]) == (None, 9, None)
        assert (found["window_seconds"], found["resets_at"]) == (86_400, "tomorrow")

    def test_of_seats_is_one_less_than_there_are_unless_said_otherwise(self) -> None:
        for capacity, said, most in ((8, None, 7), (1, None, 1), (8, 3, 3), (8, 20, 20)):
            own = standing(
                models=(replace(OPEN, capacity=capacity),), limits={"weight": 1, "seats": said}
            )
            assert limit(shown(own), "seats")["limit"] == most
        assert limit(shown(standing(models=())), "seats")["limit"] is None

    def test_of_queued_runs_counts_those_that_are_scheduled(self) -> None:
        assert limit(shown(standing(queued=2, scheduled=3)), "queued")["used"] == 5

    def test_of_streams_is_this_processs(self) -> None:
        assert limit(shown(standing()), "streams")["used"] == 3


class TestAModel:
    def test_has_the_share_of_those_seats_that_are_in_use(self) -> None:
        (model,) = shown(standing(), in_use=4)["models"]
        assert (model["in_use"], model["mine"], model["share"]) == (4, 1, 0.25)

    def test_has_at_least_ones_own_seats_in_use(self) -> None:
        """The two are looked at a moment apart."""
        (model,) = shown(standing(), in_use=0)["models"]
        assert (model["in_use"], model["share"]) == (1, 1)

    def test_that_nobody_uses_is_nobodys(self) -> None:
        idle = standing(models=(replace(OPEN, mine=0),))
        assert shown(idle)["models"][0]["share"] == 0
