"""What time it is, here and elsewhere."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import ToolMessage

from app.tools.builtin.clock import clock_tools
from app.tools.calls import run_call

NOW = datetime(2026, 3, 28, 23, 15, 30, tzinfo=UTC)
TOOLS = {tool.name: tool for tool in clock_tools(lambda: NOW)}


async def calling(name: str, **arguments: Any) -> ToolMessage:
    return await run_call(
        {"name": name, "args": arguments, "id": "1", "type": "tool_call"}, TOOLS, None
    )


async def told(name: str, **arguments: Any) -> Any:
    answer = await calling(name, **arguments)
    assert answer.status == "success"
    return json.loads(answer.text)


async def refused(name: str, **arguments: Any) -> str:
    answer = await calling(name, **arguments)
    assert answer.status == "error"
    return answer.text


async def converted(time: str, source: str, target: str) -> Any:
    return await told("time_convert", time=time, from_timezone=source, to_timezone=target)


class TestTheTime:
    async def test_is_told_in_utc(self) -> None:
        assert await told("time_now") == {
            "timezone": "UTC",
            "time": "2026-03-28T23:15:30",
            "weekday": "Saturday",
            "utc_offset": "+00:00",
            "abbreviation": "UTC",
        }

    async def test_is_told_in_any_zone_with_the_day_there(self) -> None:
        there = await told("time_now", timezone="Asia/Kathmandu")
        assert (there["time"], there["weekday"], there["utc_offset"]) == (
            "2026-03-29T05:00:30",
            "Sunday",
            "+05:45",
        )

    async def test_is_this_moments(self) -> None:
        tools = {tool.name: tool for tool in clock_tools()}
        before = datetime.now(UTC).replace(microsecond=0)
        call = {"name": "time_now", "args": {}, "id": "1", "type": "tool_call"}
        answer = await run_call(call, tools, None)  # type: ignore[arg-type]
        moment = datetime.fromisoformat(json.loads(answer.text)["time"]).replace(tzinfo=UTC)
        assert before <= moment <= datetime.now(UTC)

    async def test_changes_nothing(self) -> None:
        assert all(tool.read_only for tool in TOOLS.values())


class TestATimeElsewhere:
    async def test_is_converted(self) -> None:
        both = await converted("2026-07-01T09:00", "America/New_York", "Europe/Berlin")
        assert (both["from"]["utc_offset"], both["to"]["time"]) == ("-04:00", "2026-07-01T15:00:00")
        assert "note" not in both

    async def test_without_a_date_is_of_today_where_it_is(self) -> None:
        # At this moment it is the 29th in Tokyo already.
        both = await converted("07:00", "Asia/Tokyo", "UTC")
        assert (both["from"]["time"], both["to"]["time"]) == (
            "2026-03-29T07:00:00",
            "2026-03-28T22:00:00",
        )

    async def test_that_the_clocks_skip_is_said_to_be_skipped(self) -> None:
        both = await converted("2026-03-29T02:30", "Europe/Berlin", "UTC")
        assert "skipped" in both["note"]

    async def test_that_comes_twice_is_said_to_and_is_the_first(self) -> None:
        both = await converted("2026-10-25T02:30", "Europe/Berlin", "UTC")
        assert "twice" in both["note"]
        assert both["to"]["time"] == "2026-10-25T00:30:00"

    @pytest.mark.parametrize("time", ["", "noon", "25:00", "2026-13-01T10:00", "9" * 1000])
    async def test_that_is_no_time_is_refused(self, time: str) -> None:
        said = await refused("time_convert", time=time, from_timezone="UTC", to_timezone="UTC")
        assert said == "Write the time as 2026-03-29T14:30, or as 14:30."

    @pytest.mark.parametrize("time", ["2026-03-29T10:00Z", "2026-03-29T10:00+02:00", "10:00+02:00"])
    async def test_with_an_offset_of_its_own_is_refused(self, time: str) -> None:
        said = await refused("time_convert", time=time, from_timezone="UTC", to_timezone="UTC")
        assert "without an offset" in said

    @pytest.mark.parametrize(
        ("time", "source", "target"),
        [
            ("0001-01-01T00:00", "Asia/Tokyo", "America/New_York"),
            ("9999-12-31T23:59", "America/New_York", "Asia/Tokyo"),
        ],
    )
    async def test_beyond_the_calendar_is_refused(
        self, time: str, source: str, target: str
    ) -> None:
        said = await refused("time_convert", time=time, from_timezone=source, to_timezone=target)
        assert said == "The calendar does not reach that far."


class TestATimeZone:
    @pytest.mark.parametrize("name", ["europe/berlin", " Europe/Berlin ", "EUROPE/BERLIN"])
    async def test_is_known_however_it_is_written(self, name: str) -> None:
        assert (await told("time_now", timezone=name))["timezone"] == "Europe/Berlin"

    @pytest.mark.parametrize(
        ("name", "meant"),
        [
            ("Berlin", "Europe/Berlin"),
            ("Europe/Berlim", "Europe/Berlin"),
            ("new york", "America/New_York"),
        ],
    )
    async def test_that_is_nearly_one_is_answered_with_the_right_name(
        self, name: str, meant: str
    ) -> None:
        assert meant in await refused("time_now", timezone=name)

    @pytest.mark.parametrize(
        "name",
        ["", "Europe", "../../etc/passwd", "/etc/localtime", "Mars/Base", "\x00", "x" * 9999],
    )
    async def test_that_is_none_is_refused(self, name: str) -> None:
        said = await refused("time_now", timezone=name)
        assert said.startswith("There is no such time zone. Names look like Europe/Berlin or UTC.")
