"""Server-sent events as bytes."""

from __future__ import annotations

from uuid import UUID

import pytest

from app.api import sse
from app.api.refusals import MalformedRequest
from app.runs.events import StoredEvent
from tenancy.run_states import RunState

RUN = UUID("00000000-0000-0000-0000-000000000001")


class TestAFrame:
    def test_of_an_event_carries_its_bytes_and_its_number(self) -> None:
        frame = sse.event_frame(StoredEvent(3, "values|sub:1", b'{"a":1}'), "3")
        assert frame == b'event: values|sub:1\ndata: {"a":1}\nid: 3\n\n'

    @pytest.mark.parametrize(
        ("state", "status"),
        [
            (RunState.SUCCESS, b"success"),
            (RunState.WAITING, b"interrupted"),
            (RunState.CANCELLED, b"interrupted"),
            (RunState.ERROR, b"error"),
        ],
    )
    def test_of_the_end_has_no_number(self, state: RunState, status: bytes) -> None:
        frame = sse.end_frame(RUN, state)
        data = b'{"run_id":"%b","status":"%b"}' % (str(RUN).encode(), status)
        assert frame == b"event: end\ndata: %b\n\n" % data


class TestAPosition:
    @pytest.mark.parametrize(
        ("value", "after"), [(None, 0), ("", 0), ("-1", 0), ("0", 0), ("7", 7)]
    )
    def test_is_read(self, value: str | None, after: int) -> None:
        assert sse.parse_last_event_id(value) == after

    @pytest.mark.parametrize("value", ["banana", "-2", "07", "1.0", " 1", "1\n", "٣", "9" * 10])
    def test_that_means_nothing_is_refused(self, value: str) -> None:
        with pytest.raises(MalformedRequest):
            sse.parse_last_event_id(value)


class TestAMode:
    @pytest.mark.parametrize(
        ("event", "modes", "wanted"),
        [
            ("values", None, True),
            ("values|sub:1", ["values"], True),
            ("updates", ["values"], False),
            ("messages", ["messages-tuple"], True),
            ("messages", ["messages"], False),
            ("messages/partial", ["messages"], True),
            ("messages/partial", ["messages-tuple"], False),
            ("metadata", ["values"], True),
            ("stopping", ["values"], True),
            ("error", ["values"], True),
        ],
    )
    def test_chooses_events(self, event: str, modes: list[str] | None, wanted: bool) -> None:
        assert sse.is_wanted(event, modes) is wanted
