"""Which connections a worker remembers to have used: of everybody a few, of nobody too many."""

from __future__ import annotations

from uuid import uuid4

import pytest

from app.connections import known
from app.connections.known import KnownConnections
from tenancy.principal import UserId

ALICE, BOB, CAROL = (UserId(uuid4()) for _ in range(3))


class TestAConnection:
    def test_is_found_by_its_person_and_its_id(self) -> None:
        notes, mail, other = uuid4(), uuid4(), uuid4()
        used = KnownConnections()
        used.remember(ALICE, notes, "notes")
        used.remember(ALICE, mail, "mail")
        used.remember(BOB, other, "notes")
        assert used.servers_of(ALICE, mail) == ["mail"]
        assert used.servers_of(BOB, notes) == []

    def test_that_was_not_stored_when_it_was_used_may_be_any(self) -> None:
        used = KnownConnections()
        used.remember(ALICE, None, "notes")
        assert used.servers_of(ALICE, uuid4()) == ["notes"]

    def test_that_was_used_longest_ago_is_forgotten_first(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(known, "MOST_KNOWN", 2)
        monkeypatch.setattr(known, "MOST_OF_EACH", 2)
        ids = [uuid4() for _ in range(3)]
        used = KnownConnections()
        for person in (ALICE, BOB, ALICE, CAROL):
            for number, connection_id in enumerate(ids):
                used.remember(person, connection_id, f"server-{number}")
        assert used.servers_of(BOB, ids[2]) == []
        assert used.servers_of(ALICE, ids[0]) == []
        assert used.servers_of(ALICE, ids[2]) == ["server-2"]
