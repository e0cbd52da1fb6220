"""A hundred things go wrong at random, under load; ``make soak`` lets a thousand."""

from __future__ import annotations

import sys

import pytest

from tests.support.development import stoa

SEED = 20
CHAOS = (sys.executable, "-m", "tests.support.chaos")


class TestAHundredFaultsUnderLoad:
    @pytest.mark.timeout(300)
    async def test_break_no_promise(self) -> None:
        options = ("--minutes", "0.8", "--faults", "100", "--seed", str(SEED))
        async with stoa(*options, program=CHAOS) as command:
            status = await command.ended()
        assert status == 0, command.output
