"""A server that is down for everybody is a line a minute, and no line for each of them."""

from __future__ import annotations

from structlog.testing import capture_logs

from app.tools.pool.telling import QUIET_SECONDS, Telling


class TestAServerThatIsLost:
    def test_is_told_of_at_once_then_once_a_minute_with_how_often_it_was(self) -> None:
        telling = Telling()
        with capture_logs() as lines:
            for second in range(int(QUIET_SECONDS) + 1):
                telling.lost("notes", "exited", float(second))
        assert [line["times"] for line in lines] == [1, int(QUIET_SECONDS)]

    def test_hides_no_other_server_and_no_other_reason(self) -> None:
        telling = Telling()
        with capture_logs() as lines:
            telling.lost("notes", "exited", 0)
            telling.lost("notes", "timeout", 1)
            telling.lost("mail", "exited", 2)
        assert len(lines) == 3
