"""How long to wait before starting again what died."""

from __future__ import annotations

import pytest

from app.dev.supervisor.backoff import Backoff


class TestBackoff:
    def test_doubles_up_to_a_bound(self) -> None:
        waiting = Backoff()
        assert [waiting.died() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]

    def test_forgets_after_a_long_life(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 0.0
        monkeypatch.setattr("app.dev.supervisor.backoff.time.monotonic", lambda: now)
        waiting = Backoff()
        waiting.died()
        waiting.died()
        waiting.born()
        now = 61.0
        assert waiting.died() == 0.5
