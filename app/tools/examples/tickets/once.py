"""Once for each key: an effect, its key and its result, committed together or not at all.

A repeat under the same key is answered what the first call was, to the byte. That holds however the
process ends, between which two lines it may be: what was not committed has not happened, and
what was is known by its key.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MARGIN = 2
"""Keys are kept for so many times as long as is promised: a repeat that was sent in time arrives
later, and clocks differ."""
MOST_KEY_CHARACTERS = 200

SCHEMA = """
CREATE TABLE IF NOT EXISTS keys (
  key TEXT PRIMARY KEY,
  call_sha256 BLOB NOT NULL,
  result TEXT NOT NULL,
  used_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS keys_by_age ON keys (used_at);
"""

Effect = Callable[[sqlite3.Connection], str]
"""Does something, all of it by this connection, and says what came of it."""


class KeyOfAnotherCall(Exception):
    """A key was used for a call of another tool, or with other arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call, as far as a repeat has to be the same."""

    key: str
    tool: str
    arguments: Mapping[str, Any]

    @property
    def sha256(self) -> bytes:
        """What it is compared by."""
        said = json.dumps([self.tool, self.arguments], sort_keys=True)
        return hashlib.sha256(said.encode()).digest()


def once(
    db: sqlite3.Connection, call: Call, effect: Effect, *, now: float, kept_seconds: float
) -> str:
    """The result of the effect, which is had unless it was had before under this key.

    The connection is in a transaction that has begun to write (``BEGIN IMMEDIATE``), so of two who
    come with one key at once the second one waits here, and then finds what the first one left.

    Raises:
        KeyOfAnotherCall: nothing was done.
    """
    kept = db.execute("SELECT call_sha256, result FROM keys WHERE key = ?", (call.key,)).fetchone()
    if kept is not None:
        if kept[0] != call.sha256:
            raise KeyOfAnotherCall
        return str(kept[1])
    db.execute("DELETE FROM keys WHERE used_at < ?", (now - kept_seconds,))
    result = effect(db)
    db.execute("INSERT INTO keys VALUES (?, ?, ?, ?)", (call.key, call.sha256, result, now))
    return result
