"""Limits are checked before they are stored: a wrong one would hold up a queue."""

from __future__ import annotations

import pytest

from tenancy.errors import InvalidInput
from tenancy.scheduler.limits import RULES, check_limits


class TestALimit:
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("weight", 0),
            ("weight", -1),
            ("weight", None),
            ("weight", float("nan")),
            ("weight", float("inf")),
            ("weight", 1001),
            ("running", -1),
            ("running", 1.5),
            ("running", True),
            ("running", "4"),
            ("requests_per_minute", 0),
            ("steps_per_run", 0),
            ("steps_per_run", None),
            ("streams", 0),
        ],
    )
    def test_that_cannot_be_is_refused_by_name(self, name: str, value: object) -> None:
        with pytest.raises(InvalidInput, match=f"`{name}` is a"):
            check_limits({name: value})

    @pytest.mark.parametrize(
        ("name", "value"),
        [("weight", 0.01), ("weight", 4), ("running", 0), ("seats", 0), ("tokens_per_day", None)],
    )
    def test_that_can_be_is_kept_as_it_is(self, name: str, value: float | None) -> None:
        assert check_limits({name: value}) == {name: value}

    def test_that_nobody_knows_is_refused_with_those_there_are(self) -> None:
        with pytest.raises(InvalidInput, match=r"There are: weight, .*streams"):
            check_limits({"speed": 1})


def test_each_rule_accepts_its_own_bounds() -> None:
    for rule in RULES.values():
        least, most = (int(x) if rule.whole else x for x in (rule.least, rule.most))
        assert check_limits({rule.name: least}) == {rule.name: least}
        assert check_limits({rule.name: most}) == {rule.name: most}
