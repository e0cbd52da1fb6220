"""Tickets in one SQLite file, which several processes may have open at once."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Self

from app.tools.examples.tickets.once import MARGIN, SCHEMA, Call, Effect, once

BUSY_SECONDS = 3600.0
"""How long another process's transaction is waited for: longer than any caller waits for an answer.
Whoever cannot look a key up must not say that the call failed: it may have been made before."""

_TICKETS = """
CREATE TABLE IF NOT EXISTS tickets (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  title TEXT NOT NULL,
  is_open INTEGER NOT NULL DEFAULT 1
);
CREATE TABLE IF NOT EXISTS changes (
  change INTEGER PRIMARY KEY AUTOINCREMENT,
  number INTEGER NOT NULL REFERENCES tickets,
  made_at REAL NOT NULL,
  what TEXT NOT NULL CHECK (what IN ('created', 'noted', 'closed')),
  note TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS changes_of_tickets ON changes (number, change);
"""

Ticket = dict[str, Any]


class Refused(Exception):
    """What was asked for cannot be done. That is a result like any other, and kept like one."""


class Desk:
    """The tickets of one file, and what was done under which key.

    Each method that changes anything is an effect: it does all that it does by the connection
    that it is given, and refuses before it has changed anything.
    """

    def __init__(
        self, file: Path, *, ttl_seconds: float, now: Callable[[], float] = time.time
    ) -> None:
        """``ttl_seconds`` is how long a key is promised to be known."""
        self.ttl_seconds = ttl_seconds
        self._now = now
        self._in_turn = Lock()
        self._db = sqlite3.connect(
            file, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        self._db.execute("PRAGMA journal_mode = WAL")
        # An answer never goes out before the disk has what it says.
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA + _TICKETS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def once(self, call: Call, effect: Effect) -> str:
        """What comes of an effect, or came of it when this key was used first.

        Raises:
            KeyOfAnotherCall: the key is another call's; nothing was done.
        """
        with self._transaction() as db:
            kept = self.ttl_seconds * MARGIN
            return once(db, call, effect, now=self._now(), kept_seconds=kept)

    def unguarded(self, effect: Effect) -> str:
        """What comes of an effect, which is had again each time."""
        with self._transaction() as db:
            return effect(db)

    def create(self, db: sqlite3.Connection, title: str, note: str) -> Ticket:
        """Open a ticket."""
        made = db.execute("INSERT INTO tickets (title) VALUES (?) RETURNING number", (title,))
        (number,) = made.fetchone()
        self._change(db, number, "created", note)
        return self.ticket(db, number)

    def update(self, db: sqlite3.Connection, number: int, note: str) -> Ticket:
        """Add a note to an open ticket.

        Raises:
            Refused: there is no such ticket, or it is closed.
        """
        self._require_open(db, number)
        self._change(db, number, "noted", note)
        return self.ticket(db, number)

    def close(self, db: sqlite3.Connection, number: int, note: str) -> Ticket:
        """Close an open ticket.

        Raises:
            Refused: there is no such ticket, or it is closed.
        """
        self._require_open(db, number)
        db.execute("UPDATE tickets SET is_open = 0 WHERE number = ?", (number,))
        self._change(db, number, "closed", note)
        return self.ticket(db, number)

    def ticket(self, db: sqlite3.Connection, number: int) -> Ticket:
        """A ticket with its history.

        Raises:
            Refused: there is no such ticket.
        """
        row = db.execute("SELECT title, is_open FROM tickets WHERE number = ?", (number,))
        if (found := row.fetchone()) is None:
            raise Refused(f"There is no ticket {number}.")
        changes = db.execute(
            "SELECT what, made_at, note FROM changes WHERE number = ? ORDER BY change", (number,)
        )
        return {
            "number": number,
            "title": found[0],
            "state": "open" if found[1] else "closed",
            "changes": [
                {"what": what, "made_at": _as_text(made_at), "note": note}
                for what, made_at, note in changes
            ],
        }

    def tickets(self, db: sqlite3.Connection, most: int) -> list[Ticket]:
        """The newest tickets, without their history."""
        rows = db.execute(
            "SELECT number, title, is_open FROM tickets ORDER BY number DESC LIMIT ?", (most,)
        )
        return [
            {"number": number, "title": title, "state": "open" if is_open else "closed"}
            for number, title, is_open in rows
        ]

    def read(self, reading: Callable[[sqlite3.Connection], Any]) -> str:
        """What somebody reads, as JSON."""
        with self._in_turn:
            return json.dumps(reading(self._db), ensure_ascii=False)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Everything within, or nothing of it; in this process and beside others."""
        with self._in_turn:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:  # commits, or rolls back what raised
                yield self._db

    def _require_open(self, db: sqlite3.Connection, number: int) -> None:
        if self.ticket(db, number)["state"] != "open":
            raise Refused(f"Ticket {number} is closed.")

    def _change(self, db: sqlite3.Connection, number: int, what: str, note: str) -> None:
        db.execute(
            "INSERT INTO changes (number, made_at, what, note) VALUES (?, ?, ?, ?)",
            (number, self._now(), what, note),
        )


def _as_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
