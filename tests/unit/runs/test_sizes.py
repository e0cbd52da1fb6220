"""What is large is worked on beside the event loop; what is small, at once."""

from __future__ import annotations

import pytest
from langchain_core.messages import HumanMessage

from app.runs.sizes import LARGE_BYTES, is_large

LONG = "a" * (LARGE_BYTES + 1)


@pytest.mark.parametrize(
    "value",
    [
        LONG,
        LONG.encode(),
        {"messages": [HumanMessage(LONG)]},
        {"messages": [HumanMessage("a" * 1000) for _ in range(100)]},
        {"a": {"b": [({"c": LONG},)]}},
        [[]] * 10_000,
        {str(number): None for number in range(10_000)},
    ],
)
def test_a_long_value_is_large_wherever_it_is_long(value: object) -> None:
    assert is_large(value)


@pytest.mark.parametrize(
    "value", [None, {}, "a" * 1000, {"messages": [HumanMessage("a" * 1000) for _ in range(20)]}]
)
def test_a_short_one_is_not(value: object) -> None:
    assert not is_large(value)


def test_one_that_has_no_end_is_looked_at_for_a_moment_only() -> None:
    endless: list[object] = []
    endless.append(endless)
    assert is_large(endless)
