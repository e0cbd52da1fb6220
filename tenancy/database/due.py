"""What is due, of all users, as the maintenance role asks for it: ids and times, nothing else.

Each query takes how many rows are wanted, longest due first, then the ids of those that are passed
over, and after that its times in seconds. It gives whose something is, the row's id (null: all of
the user's that is due), and for how many seconds it has been due.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType

DueQuery = NewType("DueQuery", str)

# Nothing may be written for others than active users.
_OF_RUNS = """
    SELECT r.user_id, r.run_id,
      extract(epoch FROM clock_timestamp() - r.ended_at)::float8 - $3::float8
    FROM runs r JOIN users u USING (user_id)
    WHERE {condition} AND u.state = 'active' AND r.run_id <> ALL ($2::uuid[])
      AND r.ended_at < (SELECT clock_timestamp()) - make_interval(secs => $3)
    ORDER BY r.ended_at LIMIT $1
"""
_OF_OWNERS = """
    SELECT d.user_id, NULL::uuid, max(d.overdue)::float8 FROM (
      SELECT o.user_id, extract(epoch FROM clock_timestamp() - o.{at}) - {after} AS overdue
      FROM {table} o JOIN users u USING (user_id)
      WHERE u.state = 'active' AND o.user_id <> ALL ($2::uuid[])
        AND o.{at} <= (SELECT clock_timestamp()) - make_interval(secs => {after})
      ORDER BY o.{at} LIMIT $1
    ) d GROUP BY d.user_id ORDER BY 3 DESC, 1
"""
_NO_OPEN_RUN = """NOT EXISTS (
        SELECT FROM runs r
        WHERE r.user_id = t.user_id AND r.thread_id = t.thread_id
          AND r.state IN ('pending', 'running', 'waiting')
      )"""
_NO_RUN_SINCE = """NOT EXISTS (
        SELECT FROM runs r
        WHERE r.user_id = t.user_id AND r.thread_id = t.thread_id
          AND (r.ended_at IS NULL OR r.ended_at > (SELECT clock_timestamp()) - {time})
      )"""
_DAY = 24 * 3600


def _owners(table: str, at: str, after: str = "$3::float8") -> DueQuery:
    return DueQuery(_OF_OWNERS.format(table=table, at=at, after=after))


MESSAGE_PIECES = DueQuery(_OF_RUNS.format(condition="r.pruned_at IS NULL"))
"""Runs that ended so many seconds ago and whose logs still have the pieces of messages."""
LOGS = DueQuery(_OF_RUNS.format(condition="r.log_dropped_at IS NULL"))
"""Runs that ended so many seconds ago and that still have a log."""
RUNS = DueQuery(_OF_RUNS.format(condition="true"))
"""Runs that ended so many seconds ago."""
_STATES = """
    SELECT t.user_id, t.thread_id,
      extract(epoch FROM clock_timestamp() - t.unpruned_since)::float8 - $3::float8
    FROM threads t JOIN users u USING (user_id)
    WHERE u.state = 'active' AND t.deleted_at IS NULL AND t.thread_id <> ALL ($2::uuid[])
      AND t.unpruned_since < (SELECT clock_timestamp()) - make_interval(secs => $3::float8)
      AND {condition}
    ORDER BY t.unpruned_since LIMIT $1
"""
_EXPIRED = """
    SELECT t.user_id, t.thread_id, extract(epoch FROM clock_timestamp() - t.expires_at)::float8
    FROM threads t JOIN users u USING (user_id)
    WHERE u.state = 'active' AND t.deleted_at IS NULL AND t.thread_id <> ALL ($2::uuid[])
      AND t.expires_at <= (SELECT clock_timestamp())
      AND {condition}
    ORDER BY t.expires_at LIMIT $1
"""
_IDLE = """
    SELECT t.user_id, t.thread_id,
      extract(epoch FROM clock_timestamp() - t.updated_at)::float8 - $3::float8
    FROM threads t JOIN users u USING (user_id)
    WHERE u.state = 'active' AND t.deleted_at IS NULL AND t.thread_id <> ALL ($2::uuid[])
      AND t.updated_at < (SELECT clock_timestamp()) - make_interval(secs => $3::float8)
      AND {condition}
    ORDER BY t.updated_at LIMIT $1
"""
STATES = DueQuery(_STATES.format(condition=_NO_OPEN_RUN))
"""Threads at rest with states that are older than so many seconds."""
EXPIRED_THREADS = DueQuery(
    _EXPIRED.format(
        condition=_NO_RUN_SINCE.format(time="make_interval(secs => t.ttl_minutes * 60)")
    )
)
"""Threads whose own time is over."""
IDLE_THREADS = DueQuery(
    _IDLE.format(condition=_NO_RUN_SINCE.format(time="make_interval(secs => $3::float8)"))
)
"""Threads in which nothing has happened for so many seconds."""
DELETED_THREADS = DueQuery("""
    SELECT t.user_id, t.thread_id, extract(epoch FROM clock_timestamp() - t.deleted_at)::float8
    FROM threads t JOIN users u USING (user_id)
    WHERE t.deleted_at IS NOT NULL AND u.state = 'active' AND t.thread_id <> ALL ($2::uuid[])
    ORDER BY t.deleted_at LIMIT $1
""")
"""Threads that are gone for their owners, and that still have rows."""
IDEMPOTENCY_KEYS = _owners("idempotency_keys", "created_at", str(_DAY))
STORE_ITEMS = _owners("store", "expires_at", "0")
AUTHORIZATIONS = _owners("authorizations", "expires_at", "0")
USAGE = _owners("usage_hours", "hour")
AUDIT_TEXTS = _owners("audit_texts", "at")


@dataclass(frozen=True, slots=True)
class DropStatement:
    """What the maintenance role deletes itself, since it is nobody's: so many rows of one kind.

    Its first parameter is how many rows at most, the others are its times in seconds; it says how
    many rows went, and for how many seconds the first of them had been due.
    """

    sql: str


AUDIT = DropStatement("""
    WITH gone AS (
      DELETE FROM audit a WHERE a.audit_id IN (
        SELECT o.audit_id FROM audit o
        WHERE o.at < (SELECT clock_timestamp()) - make_interval(secs => $2::float8)
        ORDER BY o.at LIMIT $1
      ) RETURNING a.at
    )
    SELECT count(*), extract(epoch FROM clock_timestamp() - min(gone.at))::float8 - $2::float8
    FROM gone
""")
TOMBSTONES = DropStatement("""
    WITH gone AS (
      DELETE FROM tombstones t WHERE (t.erasure_id, t.identity_hash) IN (
        SELECT o.erasure_id, o.identity_hash FROM tombstones o
        WHERE o.expires_at <= (SELECT clock_timestamp()) ORDER BY o.expires_at LIMIT $1
      ) RETURNING t.expires_at
    )
    SELECT count(*), extract(epoch FROM clock_timestamp() - min(gone.expires_at))::float8 FROM gone
""")
# One statement sees what was there when it began, hence two: stops first, then whatever has none.
ERASURE_STOPS = DropStatement("""
    WITH gone AS (
      DELETE FROM erasure_stops s WHERE (s.erasure_id, s.worker_id) IN (
        SELECT o.erasure_id, o.worker_id FROM erasure_stops o JOIN erasures e USING (erasure_id)
        WHERE e.step = 'done' LIMIT $1
      ) RETURNING s.stopped_at
    )
    SELECT count(*), NULL::float8 FROM gone
""")
ERASURES = DropStatement("""
    WITH gone AS (
      DELETE FROM erasures e WHERE e.erasure_id IN (
        SELECT o.erasure_id FROM erasures o
        WHERE o.step = 'done'
          AND o.ended_at < (SELECT clock_timestamp()) - make_interval(secs => $2::float8)
          AND NOT EXISTS (SELECT FROM tombstones t WHERE t.erasure_id = o.erasure_id)
          AND NOT EXISTS (SELECT FROM erasure_stops s WHERE s.erasure_id = o.erasure_id)
        ORDER BY o.requested_at LIMIT $1
      ) RETURNING e.ended_at
    )
    SELECT count(*), extract(epoch FROM clock_timestamp() - min(gone.ended_at))::float8 - $2::float8
    FROM gone
""")
"""Erasures that ended so many seconds ago and that no tombstone needs any more."""
