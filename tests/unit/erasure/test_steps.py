"""How long one erasure keeps a worker from the others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from app.erasure import steps
from app.erasure.steps import ErasureSteps
from tenancy.erasure.records import ErasureJob
from tenancy.principal import UserId


class TestSomebodyWithMoreRowsThanThereIsTimeFor:
    async def test_is_left_for_a_while_so_that_others_have_their_turn(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def one_more(*_: object) -> bool:
            return True

        monkeypatch.setattr(steps, "DELETE_SECONDS", 0.01)
        forgotten: list[object] = []
        rows: Any = SimpleNamespace(
            delete=one_more, forget=lambda leaver: forgotten.append(leaver.user_id)
        )
        nobody: Any = None
        taking = ErasureSteps(nobody, rows, *([nobody] * 5))
        job = ErasureJob(uuid4(), UserId(uuid4()), "delete", 1)
        assert await taking.take(job) is None
        assert forgotten == [job.user_id], "another may end it, and nobody tells us"
