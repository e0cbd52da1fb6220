"""How often and how late a call that failed is made again."""

from __future__ import annotations

import pytest
from tenacity import RetryCallState

from app.models.errors import ModelBusy, ModelError, ModelMissing, OllamaUnreachable
from app.models.retry import BUDGET_SECONDS, LONGEST_WAIT_SECONDS, attempts


async def attempted(*failures: ModelError) -> tuple[int, list[float]]:
    """How often a call is made that fails like this, the last for ever; the pauses between."""
    pauses: list[float] = []
    made = 0

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async def call() -> None:
        nonlocal made
        made += 1
        raise failures[min(made, len(failures)) - 1]

    with pytest.raises(ModelError):
        await attempts(0.25).copy(sleep=sleep)(call)
    return made, pauses


class TestACall:
    async def test_that_took_a_pool_out_is_made_again_at_once(self) -> None:
        made, pauses = await attempted(OllamaUnreachable(), ModelMissing())
        assert (made, set(pauses)) == (6, {0})

    async def test_that_was_turned_away_leaves_the_server_some_time(self) -> None:
        made, pauses = await attempted(ModelBusy())
        assert made == 5
        assert min(pauses) >= 0.25
        assert max(pauses) <= LONGEST_WAIT_SECONDS

    async def test_is_never_made_more_often_than_its_last_failure_allows(self) -> None:
        made, _ = await attempted(ModelBusy(), ModelBusy(), ModelBusy(), ModelError())
        assert made == 4

    @pytest.mark.parametrize(("late", "stops"), [(-1, False), (1, True)])
    def test_is_not_made_again_long_after_it_failed_first(self, late: float, stops: bool) -> None:
        retrying = attempts(0.25)
        state = RetryCallState(retrying, None, (), {})
        state.set_exception((ModelBusy, ModelBusy(), None))
        state.outcome_timestamp = 1000.0
        assert not retrying.stop(state)
        state.outcome_timestamp = 1000.0 + BUDGET_SECONDS + late
        assert retrying.stop(state) is stops
