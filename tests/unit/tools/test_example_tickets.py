"""The example's heart: an effect, its key and its result are committed together, or not at all."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.tools.examples.tickets.desk import Desk, Refused
from app.tools.examples.tickets.once import MARGIN, Call, Effect, KeyOfAnotherCall

TTL = 100.0


class Clock:
    """Stands at a time until it is moved."""

    def __init__(self) -> None:
        self.seconds = 1_000_000.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    with Desk(tmp_path / "tickets.db", ttl_seconds=TTL, now=clock) as desk:
        yield desk


def creating(desk: Desk, title: str) -> Effect:
    return lambda db: json.dumps(desk.create(db, title, ""))


def create(desk: Desk, key: str, title: str = "A door squeaks") -> dict[str, Any]:
    said = desk.once(Call(key, "create", {"title": title}), creating(desk, title))
    result: dict[str, Any] = json.loads(said)
    return result


def titles(desk: Desk) -> list[str]:
    return [each["title"] for each in json.loads(desk.read(lambda db: desk.tickets(db, 100)))]


class TestACallWithAKey:
    def test_is_made_once_and_answered_alike_however_often_it_comes(
        self, desk: Desk, clock: Clock
    ) -> None:
        first = create(desk, "k")
        clock.seconds += TTL
        desk.unguarded(lambda db: json.dumps(desk.update(db, first["number"], "Oil it.")))
        assert create(desk, "k") == first
        assert titles(desk) == ["A door squeaks"]

    def test_is_another_call_under_another_key(self, desk: Desk) -> None:
        assert create(desk, "k")["number"] != create(desk, "l")["number"]

    @pytest.mark.parametrize(
        "other",
        [
            Call("k", "create", {"title": "A window"}),
            Call("k", "close", {"title": "A door squeaks"}),
        ],
        ids=["other arguments", "another tool"],
    )
    def test_is_refused_where_the_key_was_used_for_another_one(
        self, desk: Desk, other: Call
    ) -> None:
        create(desk, "k")
        with pytest.raises(KeyOfAnotherCall):
            desk.once(other, creating(desk, "A window"))
        assert titles(desk) == ["A door squeaks"]

    def test_is_the_same_call_in_whichever_order_its_arguments_come(self) -> None:
        one, other = {"number": 1, "note": "a"}, {"note": "a", "number": 1}
        assert Call("k", "update", one).sha256 == Call("k", "update", other).sha256

    def test_leaves_neither_effect_nor_key_when_it_does_not_come_to_its_end(
        self, desk: Desk
    ) -> None:
        def fail(db: sqlite3.Connection) -> str:
            desk.create(db, "Half done", "")
            raise OSError

        with pytest.raises(OSError):  # noqa: PT011 - it has no words
            desk.once(Call("k", "create", {}), fail)
        assert titles(desk) == []
        assert (
            desk.once(Call("k", "close", {}), lambda _: "as if it were new") == "as if it were new"
        )

    def test_is_known_to_the_next_process(self, desk: Desk, tmp_path: Path, clock: Clock) -> None:
        first = create(desk, "k")
        with Desk(tmp_path / "tickets.db", ttl_seconds=TTL, now=clock) as again:
            assert create(again, "k") == first


class TestAKey:
    def test_is_kept_for_longer_than_is_promised(self, desk: Desk, clock: Clock) -> None:
        first = create(desk, "old")
        clock.seconds += TTL * MARGIN
        create(desk, "new")
        assert create(desk, "old") == first

    def test_is_forgotten_then(self, desk: Desk, clock: Clock) -> None:
        create(desk, "old")
        clock.seconds += TTL * MARGIN + 1
        create(desk, "new")
        count = desk.read(lambda db: db.execute("SELECT count(*) FROM keys").fetchone()[0])
        assert count == "1"


class TestATicket:
    def test_tells_what_was_done_with_it(self, desk: Desk) -> None:
        number = create(desk, "k")["number"]
        desk.unguarded(lambda db: json.dumps(desk.update(db, number, "Oil it.")))
        said = desk.unguarded(lambda db: json.dumps(desk.close(db, number, "Oiled.")))
        ticket = json.loads(said)
        assert ticket["state"] == "closed"
        assert [(each["what"], each["note"]) for each in ticket["changes"]] == [
            ("created", ""),
            ("noted", "Oil it."),
            ("closed", "Oiled."),
        ]

    def test_that_is_closed_takes_nothing_more(self, desk: Desk) -> None:
        number = create(desk, "k")["number"]
        desk.unguarded(lambda db: json.dumps(desk.close(db, number, "")))
        for again in (desk.update, desk.close):
            with pytest.raises(Refused, match="is closed"):
                desk.unguarded(lambda db, do=again: json.dumps(do(db, number, "")))  # type: ignore[misc]

    def test_that_there_is_not_is_told_so(self, desk: Desk) -> None:
        with pytest.raises(Refused, match="no ticket 7"):
            desk.read(lambda db: desk.ticket(db, 7))
