"""The steps of an erasure, one after the other. Each may be taken again, wherever it was left.

A step's work is done before it is noted: whoever dies in between has it done once more by another.
So what is counted is counted before it goes, and not while.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app import faults
from app.erasure.errors import RowsLeft
from tenancy.errors import UserUnavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from app.erasure.receipts import Receipts
    from app.erasure.revoking import TokenRevocation
    from app.erasure.tombstones import Tombstones
    from tenancy.database.signals import Announcer
    from tenancy.database.upkeep import UpkeepDatabase
    from tenancy.erasure.own_rows import OwnRows
    from tenancy.erasure.records import ErasureDatabase, ErasureJob, Step
    from tenancy.principal import UserId

STOP_SECONDS = 10.0
"""How long it is waited for everybody to let go, before another erasure is looked at."""
LOOK_SECONDS = 0.05
LONGEST_LOOK_SECONDS = 1.0
"""Between two looks whether they have, each time longer."""
ROWS = 250
"""Rows that one transaction deletes."""
PAUSES = 3
"""How many times as long as a batch took it is waited before the next."""
DELETE_SECONDS = 30.0
"""How long one person's rows are deleted, before another erasure is looked at."""
TRIES = 10
"""How often it is begun anew where the last row of all is referred to still."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What comes after a step, and what is to be noted of it."""

    next_step: Step
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Leaver:
    """Whose rows they are."""

    user_id: UserId


class ErasureSteps:
    """Takes the step that an erasure is at.

    Args:
        erasures: where erasures stand.
        rows: a person's rows, to be deleted.
        upkeep: counts anybody's rows.
        tombstones: what stays for a while.
        revocation: gives tokens back.
        receipts: signs what was done.
        announcer: tells web processes that somebody is gone.
    """

    def __init__(
        self,
        erasures: ErasureDatabase,
        rows: OwnRows,
        upkeep: UpkeepDatabase,
        tombstones: Tombstones,
        revocation: TokenRevocation,
        receipts: Receipts,
        announcer: Announcer,
    ) -> None:
        self._erasures = erasures
        self._rows = rows
        self._upkeep = upkeep
        self._tombstones = tombstones
        self._revocation = revocation
        self._receipts = receipts
        self._announcer = announcer
        self._steps: Mapping[Step, Callable[[ErasureJob], Awaitable[Taken | None]]] = {
            "record": self._record,
            "revoke": self._revoke,
            "destroy_keys": self._destroy_keys,
            "stop": self._stop,
            "delete": self._delete,
            "verify": self._verify,
            "sign": self._sign,
        }

    async def take(self, job: ErasureJob) -> Taken | None:
        """Take a job's step; None where it is not over yet, and has to be taken up again later.

        Raises:
            TombstoneNotWritten: what must stay cannot be kept.
            RowsLeft: something cannot be deleted.
            DatabaseUnavailable: Postgres cannot be reached.
        """
        return await self._steps[job.step](job)

    async def _record(self, job: ErasureJob) -> Taken:
        """What must outlast the database comes first, once nothing is written any more."""
        await self._erasures.await_writers(_leaver(job).user_id)
        await self._tombstones.record(job)
        faults.reach("erasure.recorded")
        return Taken("revoke")

    async def _revoke(self, job: ErasureJob) -> Taken:
        leaver = _leaver(job)
        done = await self._revocation.revoke_all(leaver)
        keys = await self._rows.count_keys(leaver)
        faults.reach("erasure.revoked")
        return Taken(
            "destroy_keys",
            {
                "tokens_revoked": done.revoked,
                "tokens_not_revoked": done.not_revoked,
                "keys_destroyed": keys,
            },
        )

    async def _destroy_keys(self, job: ErasureJob) -> Taken:
        """From here on nobody can open what a backup still has of their secrets."""
        await self._rows.destroy_keys(_leaver(job))
        faults.reach("erasure.keys_destroyed")
        return Taken("stop")

    async def _stop(self, job: ErasureJob) -> Taken | None:
        """Until nothing is done for them any more, anywhere."""
        user_id = _leaver(job).user_id
        over = asyncio.get_running_loop().time() + STOP_SECONDS
        pause = LOOK_SECONDS
        while True:
            await self._erasures.end_runs(user_id)
            if await self._erasures.is_quiet(job.erasure_id):
                break
            if asyncio.get_running_loop().time() > over:
                return None
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK_SECONDS)
        await self._erasures.note_usage(job)
        counts = await self._upkeep.count_rows(user_id)
        faults.reach("erasure.stopped")
        return Taken("delete", {"deleted": counts})

    async def _delete(self, job: ErasureJob) -> Taken | None:
        """Row by row, as slowly as others need it; who they were last of all."""
        leaver = _leaver(job)
        try:
            if not await self._delete_rows(leaver):
                return None
        except UserUnavailable:
            pass  # gone already: whoever was at it before has died since
        finally:
            self._rows.forget(leaver)
        faults.reach("erasure.deleted")
        return Taken("verify")

    async def _delete_rows(self, leaver: _Leaver) -> bool:
        """Delete until there is nothing left, or it is others' turn: False.

        Raises:
            RowsLeft: something cannot be deleted.
            UserUnavailable: they are gone already.
        """
        clock = asyncio.get_running_loop().time
        over = clock() + DELETE_SECONDS
        for _ in range(TRIES):
            began = clock()
            while await self._rows.delete(leaver, ROWS):
                faults.reach("erasure.batch")
                await asyncio.sleep(PAUSES * (clock() - began))  # the database is others'
                began = clock()
                if began > over:
                    return False
            if await self._rows.delete_user(leaver):
                return True
        raise RowsLeft

    async def _verify(self, job: ErasureJob) -> Taken:
        """By the role that sees whose each row is, and nothing else of it."""
        user_id = _leaver(job).user_id
        counts = await self._upkeep.count_rows(user_id)
        if any(counts.values()):
            return Taken("delete", {"deleted": counts})
        self._announcer.user_changed(user_id)
        faults.reach("erasure.verified")
        return Taken("sign", {"remaining": counts})

    async def _sign(self, job: ErasureJob) -> Taken:
        erasure = await self._erasures.find(job.erasure_id)
        assert erasure is not None  # noqa: S101 - it is this one
        receipt = self._receipts.sign(erasure)
        faults.reach("erasure.signed")
        return Taken("done", {"receipt": receipt})


def _leaver(job: ErasureJob) -> _Leaver:
    """Whose erasure it is: known until it is verified that nothing is left of them."""
    assert job.user_id is not None  # noqa: S101 - see above
    return _Leaver(job.user_id)
