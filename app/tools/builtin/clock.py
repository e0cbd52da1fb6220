"""The tools that tell the time, and what it is elsewhere."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from app.tools.calls import AgentTool
from app.tools.refusal import ToolRefusal

_SECONDS = 5.0
_LONGEST = 64
_Zone = Annotated[
    str, Field(description="Name of a time zone, such as Europe/Berlin, America/New_York or UTC.")
]
Now = Callable[[], datetime]


def clock_tools(now: Now = lambda: datetime.now(UTC)) -> list[AgentTool]:
    """The tools ``time_now`` and ``time_convert``."""

    async def time_now(timezone: _Zone = "UTC") -> dict[str, str]:
        """Tell the current date and time, in any time zone."""
        return _told(now().astimezone(zone_of(timezone)))

    async def time_convert(
        time: Annotated[
            str, Field(description="Date and time (2026-03-29T14:30) or, for today, 14:30.")
        ],
        from_timezone: _Zone,
        to_timezone: _Zone,
    ) -> dict[str, object]:
        """Tell what a date and time of one time zone is in another."""
        source, target = zone_of(from_timezone), zone_of(to_timezone)
        moment = _moment(time, source, now())
        return {
            "from": _told(moment),
            "to": _told(_elsewhere(moment, target)),
            **_note(moment),
        }

    tools = (time_now, time_convert)
    return [
        AgentTool.from_function(tool, read_only=True, timeout_seconds=_SECONDS) for tool in tools
    ]


def zone_of(name: str) -> ZoneInfo:
    """The time zone of this name.

    Raises:
        ToolRefusal: there is none; the message has names that look like it.
    """
    by_name = _names()
    known = by_name.get(name.strip().lower())
    if known is not None:
        return ZoneInfo(known)
    asked = name.strip().lower().replace(" ", "_")[:_LONGEST]
    near = [by_name[each] for each in difflib.get_close_matches(asked, by_name, n=3)]
    near += [full for each, full in sorted(by_name.items()) if each.rsplit("/")[-1] == asked]
    hint = f" Did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    raise ToolRefusal(f"There is no such time zone. Names look like Europe/Berlin or UTC.{hint}")


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def _moment(said: str, zone: ZoneInfo, now: datetime) -> datetime:
    said = said.strip()
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        try:
            moment = datetime.combine(now.astimezone(zone).date(), time.fromisoformat(said))
        except ValueError:
            raise ToolRefusal("Write the time as 2026-03-29T14:30, or as 14:30.") from None
    if moment.tzinfo is not None:
        raise ToolRefusal("Write the time without an offset: its time zone is from_timezone.")
    return moment.replace(tzinfo=zone)


def _elsewhere(moment: datetime, zone: ZoneInfo) -> datetime:
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise ToolRefusal("The calendar does not reach that far.") from None


def _told(moment: datetime) -> dict[str, str]:
    offset = moment.strftime("%z")
    return {
        "timezone": str(moment.tzinfo),
        "time": moment.replace(tzinfo=None).isoformat(timespec="seconds"),
        "weekday": moment.strftime("%A"),
        "utc_offset": f"{offset[:3]}:{offset[3:5]}",
        "abbreviation": moment.tzname() or "",
    }


def _note(moment: datetime) -> dict[str, str]:
    """What there is to say where clocks are changed."""
    first, second = moment.replace(fold=0), moment.replace(fold=1)
    if first.utcoffset() == second.utcoffset():
        return {}
    if (first.utcoffset() or timedelta()) < (second.utcoffset() or timedelta()):
        return {"note": "The clocks go forward: this time is skipped there."}
    return {"note": "The clocks go back: this time comes twice there; this is the first."}
