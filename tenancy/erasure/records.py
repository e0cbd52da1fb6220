"""Erasures as durable jobs, through the cross-user door: begun, led step by step, looked at.

Nothing here deletes a person's rows: that is done bound to the person
(:mod:`tenancy.erasure.own_rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, get_args

from tenancy.database.calls import FunctionCalls
from tenancy.database.signals import USER_CHANGED
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    import asyncpg

    from tenancy.acts import Act
    from tenancy.database.engine import DatabaseSettings

Requester = Literal["person", "operator", "restore"]
Step = Literal["record", "revoke", "destroy_keys", "stop", "delete", "verify", "sign", "done"]
"""What is done next."""
STEPS: Final[tuple[Step, ...]] = get_args(Step)
"""In their order."""

_RUNS_AT_ONCE = 200
_COLUMNS = """
    e.erasure_id, e.subject, e.requested_by, e.requested_at, e.step, e.attempts, e.failure,
    e.keys_destroyed, e.tokens_revoked, e.tokens_not_revoked, e.folders_deleted, e.deleted,
    e.remaining, e.verified_at, e.ended_at, e.receipt
"""
_BEGIN = "SELECT dispatch.begin_erasure($1, $2, $3, $4, $5, $6)"
_AWAIT_WRITERS = "SELECT dispatch.await_writers($1)"
_ANNOUNCE = "SELECT pg_notify($1, $2)"
_CLAIM = "SELECT erasure_id, subject, step, attempts FROM dispatch.claim_erasure($1)"
_KEEP = "SELECT dispatch.keep_erasure($1, $2, $3)"
_RELEASE = "SELECT dispatch.release_erasure($1, $2, $3, $4)"
_ADVANCE = "SELECT dispatch.advance_erasure($1, $2, $3, $4)"
_TO_STOP = "SELECT erasure_id, subject FROM dispatch.erasures_to_stop($1)"
_STOPPED = "SELECT dispatch.note_stop($1, $2, $3)"
_END_RUNS = "SELECT ended, held FROM dispatch.end_runs($1, $2)"
_IS_QUIET = "SELECT coalesce(dispatch.is_quiet($1), false)"
_AWAITED = """
    SELECT w.worker_id FROM workers w
    WHERE w.lease_until > clock_timestamp() AND NOT EXISTS (
      SELECT FROM erasure_stops s WHERE s.erasure_id = $1 AND s.worker_id = w.worker_id
    )
    ORDER BY w.worker_id
"""
_FIND = f"SELECT {_COLUMNS} FROM erasures e WHERE e.erasure_id = $1"  # noqa: S608 - constants
_IN = "WHERE $1::text[] IS NULL OR e.step = ANY ($1)"
_LIST = f"""
    SELECT {_COLUMNS} FROM erasures e {_IN}
    ORDER BY e.requested_at DESC, e.erasure_id DESC LIMIT $2 OFFSET $3
"""  # noqa: S608 - constants
_COUNT = f"SELECT count(*) FROM erasures e {_IN}"  # noqa: S608 - constants
_RECORD = "SELECT dispatch.record_tombstones($1, $2, $3, $4, $5)"
_NOTE_USAGE = "SELECT dispatch.note_usage($1, $2)"
_UNKNOWN = """
    SELECT u.id FROM unnest($1::uuid[]) AS u (id)
    WHERE NOT EXISTS (SELECT FROM erasures e WHERE e.erasure_id = u.id)
"""
_RECORDED = """
    SELECT DISTINCT t.erasure_id FROM tombstones t JOIN erasures e USING (erasure_id)
    WHERE e.step <> 'record' AND t.expires_at > clock_timestamp()
"""
_NOW = "SELECT clock_timestamp()"


@dataclass(frozen=True, slots=True)
class ErasureJob:
    """An erasure that this process works on, while its claim holds."""

    erasure_id: UUID
    user_id: UserId | None = field(repr=False)
    """None once nothing is left of the person."""
    step: Step
    attempts: int
    """The fence: each claim raises it, and nothing is said of the job under an older one."""


@dataclass(frozen=True, slots=True)
class Erasure:
    """What there is to know of an erasure. All but ``user_id`` may be told."""

    erasure_id: UUID
    user_id: UserId | None = field(repr=False)
    requested_by: Requester
    requested_at: datetime
    step: Step
    attempts: int
    failure: str | None
    """A code, of what went wrong last; None once it went on."""
    keys_destroyed: int
    tokens_revoked: int
    tokens_not_revoked: int
    folders_deleted: int
    deleted: Mapping[str, int]
    remaining: Mapping[str, int] | None
    verified_at: datetime | None
    ended_at: datetime | None
    receipt: str | None


class ErasureDatabase:
    """The erasures. Each method is one function call in its own transaction.

    Raises, each: DatabaseUnavailable, if Postgres cannot be reached.
    """

    def __init__(self, settings: DatabaseSettings) -> None:
        self._calls = FunctionCalls(settings)

    async def begin(
        self,
        user_id: UserId,
        requested_by: Requester,
        erasure_id: UUID | None = None,
        act: Act | None = None,
    ) -> UUID | None:
        """Begin to erase a person, or find what was begun; None where there is nobody like that.

        From here on no write begins for them; ``await_writers`` waits for those under way.
        ``act`` is put on record.

        Raises:
            UserUnavailable: whoever acts may not any more.
        """
        acting = (None, None, None) if act is None else act.arguments
        (row,) = await self._calls.fetch(_BEGIN, user_id, requested_by, erasure_id, *acting)
        begun: UUID | None = row[0]
        return begun

    async def await_writers(self, user_id: UserId) -> None:
        """Return once nothing is being written for somebody whose erasure has begun."""
        await self._calls.fetch(_AWAIT_WRITERS, user_id)

    async def announce(self, user_id: UserId) -> None:
        """Tell whoever listens of somebody who leaves; whoever does not hear of it looks."""
        await self._calls.fetch(_ANNOUNCE, USER_CHANGED, str(user_id))

    async def claim(self, seconds: float) -> ErasureJob | None:
        """Take on one that nobody works on: the one that was left for longest, or never tried."""
        rows = await self._calls.fetch(_CLAIM, seconds)
        for erasure_id, subject, step, attempts in rows:
            return ErasureJob(erasure_id, _user(subject), step, attempts)
        return None

    async def keep(self, job: ErasureJob, seconds: float) -> bool:
        """Keep it for so many seconds from now; False where it is somebody else's by now."""
        return await self._is_ours(_KEEP, job, seconds)

    async def advance(self, job: ErasureJob, step: Step, **facts: object) -> bool:
        """Go on to a step, or stay at one, with what has come of it; False where it is not ours.

        ``keys_destroyed``, ``tokens_revoked`` and ``tokens_not_revoked`` are set, ``deleted`` is
        added up by table, ``remaining`` and ``receipt`` are set. With step ``sign`` the erasure
        forgets whose it was.
        """
        return await self._is_ours(_ADVANCE, job, step, facts)

    async def fail(self, job: ErasureJob, code: str, seconds: float = 5.0) -> bool:
        """Give it back with what went wrong; it is tried again after so many seconds."""
        return await self._is_ours(_RELEASE, job, seconds, code)

    async def wait(self, job: ErasureJob, seconds: float) -> bool:
        """Give it back; it is looked at again after so many seconds."""
        return await self._is_ours(_RELEASE, job, seconds, None)

    async def to_stop(self, worker_id: UUID) -> list[tuple[UUID, UserId]]:
        """Erasures, and whose, of people that this worker has not said it has let go of."""
        rows = await self._calls.fetch(_TO_STOP, worker_id)
        return [(erasure_id, UserId(subject)) for erasure_id, subject in rows]

    async def stopped(self, erasure_id: UUID, worker_id: UUID, folders: int = 0) -> None:
        """Say that a worker holds nothing of the person, and has deleted so many folders."""
        await self._calls.fetch(_STOPPED, erasure_id, worker_id, folders)

    async def end_runs(self, user_id: UserId) -> list[UUID]:
        """End every run of somebody who is being erased.

        Returns those that a living worker holds, which are only told to stop: they end once it
        has let go.
        """
        while True:
            (row,) = await self._calls.fetch(_END_RUNS, user_id, _RUNS_AT_ONCE)
            if row["ended"] == 0 or row["ended"] + len(row["held"]) < _RUNS_AT_ONCE:
                return list(row["held"])

    async def is_quiet(self, erasure_id: UUID) -> bool:
        """Whether every living worker has let go, no run is open, and no seat is held."""
        (row,) = await self._calls.fetch(_IS_QUIET, erasure_id)
        return bool(row[0])

    async def awaited(self, erasure_id: UUID) -> list[UUID]:
        """The living workers that have not said yet that they let go of the person."""
        return [row["worker_id"] for row in await self._calls.fetch(_AWAITED, erasure_id)]

    async def find(self, erasure_id: UUID) -> Erasure | None:
        """An erasure, or None where there is none of that id."""
        rows = await self._calls.fetch(_FIND, erasure_id)
        return _erasure(rows[0]) if rows else None

    async def unknown(self, erasure_ids: Iterable[UUID]) -> list[UUID]:
        """Which of these ids the database does not know."""
        return [row[0] for row in await self._calls.fetch(_UNKNOWN, list(erasure_ids))]

    async def recorded(self) -> set[UUID]:
        """Erasures whose tombstone was set, in the database and outside, and is in force."""
        return {row["erasure_id"] for row in await self._calls.fetch(_RECORDED)}

    async def list(
        self, limit: int, offset: int = 0, steps: Sequence[str] | None = None
    ) -> tuple[list[Erasure], int]:
        """A page of erasures, the newest first, and how many there are; at these steps only."""
        rows = await self._calls.fetch(_LIST, steps, limit, offset)
        (counted,) = await self._calls.fetch(_COUNT, steps)
        return [_erasure(row) for row in rows], int(counted[0])

    async def record_tombstones(
        self,
        erasure_id: UUID,
        user_hash: bytes,
        identity_hashes: Sequence[bytes],
        key_id: str,
        seconds: float,
    ) -> datetime:
        """Set tombstones, one per identity, until so long after the request; say until when."""
        (row,) = await self._calls.fetch(
            _RECORD, erasure_id, user_hash, list(identity_hashes), key_id, seconds
        )
        expires_at: datetime = row[0]
        return expires_at

    async def note_usage(self, job: ErasureJob) -> bool:
        """Bring what the tombstones say was spent up to date, once nothing runs any more."""
        return await self._is_ours(_NOTE_USAGE, job)

    async def now(self) -> datetime:
        """The database's clock."""
        (row,) = await self._calls.fetch(_NOW)
        now: datetime = row[0]
        return now

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()

    async def _is_ours(self, statement: str, job: ErasureJob, *arguments: object) -> bool:
        (row,) = await self._calls.fetch(statement, job.erasure_id, job.attempts, *arguments)
        return bool(row[0])


def _user(subject: UUID | None) -> UserId | None:
    return None if subject is None else UserId(subject)


def _erasure(row: asyncpg.Record) -> Erasure:
    facts = dict(row.items())
    return Erasure(user_id=_user(facts.pop("subject")), **facts)
