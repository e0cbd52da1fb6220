"""How a person's own links are told among the parts of the service."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.connections.standing import NOT_ALLOWED, State, UserServer
from app.runtime.parts import component_json, database_away, own_parts, standing_of
from app.tools.servers import HttpTransport, McpServer
from tenancy.scheduler.components import Component

SINCE = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
WORKS = UserServer(
    McpServer("mine", HttpTransport("https://mcp.example.com")),
    None,
    7,
    True,
    False,
    "available",
    standing_version=40,
)
FAILS = replace(
    WORKS, state="unavailable", reason="timeout", failing_since=SINCE, failing_reason="exited"
)


class TestALink:
    def test_that_works_is_available(self) -> None:
        assert own_parts([WORKS]) == [Component("connection:mine", "available", None, None, 40)]

    def test_that_fails_says_since_when_and_why_at_first(self) -> None:
        (told,) = own_parts([FAILS])
        assert told == Component("connection:mine", "unavailable", "mcp_exited", SINCE, 40)

    def test_without_a_reason_has_failed(self) -> None:
        (told,) = own_parts([replace(FAILS, failing_reason=None)])
        assert told.reason == "mcp_failed"

    @pytest.mark.parametrize("state", ["checking", "unknown"])
    def test_that_failed_and_is_looked_at_again_fails_until_it_works(self, state: State) -> None:
        assert own_parts([replace(FAILS, state=state, reason=None)]) == own_parts([FAILS])

    @pytest.mark.parametrize("state", ["needs_key", "needs_authorization", "disconnected"])
    def test_that_waits_for_its_person_is_not_spoken_of(self, state: State) -> None:
        assert own_parts([replace(FAILS, state=state)]) == []

    @pytest.mark.parametrize("state", ["checking", "unknown"])
    def test_that_nobody_has_tried_yet_is_not_spoken_of(self, state: State) -> None:
        assert own_parts([replace(WORKS, state=state)]) == []

    def test_that_the_operator_does_not_allow_any_more_is_not_spoken_of(self) -> None:
        assert own_parts([replace(FAILS, reason=NOT_ALLOWED)]) == []


class TestTheDatabase:
    def test_that_is_away_is_newer_than_what_it_said_last_and_older_than_what_it_says_next(
        self,
    ) -> None:
        told = database_away(1000, SINCE)
        assert (told.status, told.reason) == ("unavailable", "database_unreachable")
        assert (told.version, told.occurred_at) == (1001, SINCE)

    def test_that_was_looked_at_again_is_no_news(self) -> None:
        first, second = [Component("database", "available", None, None, each) for each in (1, 2)]
        assert standing_of(first) == standing_of(second)
        assert standing_of(first) != standing_of(database_away(2, SINCE))


class TestTheDocument:
    def test_says_no_more_than_is_known(self) -> None:
        works = component_json(Component("workers", "available", None, None, 3))
        assert works == {"component": "workers", "status": "available", "version": 3}
        fails = component_json(Component("workers", "unavailable", "no_workers", SINCE, 4))
        assert fails == {
            "component": "workers",
            "status": "unavailable",
            "version": 4,
            "reason": "no_workers",
            "occurred_at": SINCE,
        }
