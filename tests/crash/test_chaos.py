"""Things of every kind go wrong at random, under load; ``make soak`` lets a thousand."""

from __future__ import annotations

import sys
from typing import Final

import pytest

from tests.support.development import stoa

SEED: Final = "3"
"""By which one of each kind is among the first forty."""
FORTY: Final = ("--minutes", "0.35", "--faults", "40")
A_HUNDRED: Final = ("--minutes", "0.8", "--faults", "100")
CHAOS: Final = (sys.executable, "-m", "tests.support.chaos")


class TestFaultsOfEveryKindUnderLoad:
    @pytest.mark.timeout(300)
    async def test_break_no_promise(self, nightly: bool) -> None:
        size = A_HUNDRED if nightly else FORTY
        async with stoa(*size, "--seed", SEED, program=CHAOS) as command:
            status = await command.ended()
        assert status == 0, command.output
