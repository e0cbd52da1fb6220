"""A call that an earlier attempt at its run may have made, and that cannot be made now.

What came of it is told, or that nobody knows: never that it was not made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from app.stopping import RunStop
from app.tools.ledger import Ledger
from app.tools.waiting import InDoubt
from tenancy.database.engine import DatabaseUnavailable
from tests.integration.tools.office import Office, Worker, make, outcome_of
from tests.integration.tools.test_calling import Held
from tests.support.tool_servers.recording import RecordingServer

NOTHING_MORE = {"type": "object", "properties": {}, "additionalProperties": False}
REPEATABLE = {"trust": {"idempotent": ["write"], "idempotency_ttl": 60}}


async def opened(office: Office, server: RecordingServer, **stoa: Any) -> Worker:
    return await office.open({"notes": {"url": server.url, "stoa": stoa}})


def stopped() -> RunStop:
    """That of a run that is to end now."""
    stop = RunStop()
    stop.cancel()
    return stop


async def taken_over(office: Office, superuser: asyncpg.Connection) -> Worker:
    """Another worker, which has the run now."""
    await superuser.execute("UPDATE runs SET fence = fence + 1")
    office.run = replace(office.run, fence=office.run.fence + 1)
    return await office.another_worker()


class TestACallThatItsToolTookBefore:
    """Its server has come to take something else since."""

    async def test_has_its_first_result(
        self, office: Office, server: RecordingServer, superuser: asyncpg.Connection
    ) -> None:
        server.offer("write", "it was written")
        await (await opened(office, server)).call("notes__write", text="a")
        worker = await self.changed(office, server, superuser)
        assert (await worker.call("notes__write", text="a")).text == "it was written"
        refused = await worker.call("notes__write", "another", text="a")
        assert (refused.status, len(server.calls)) == ("error", 1)

    async def test_is_in_doubt_where_nobody_heard_what_came_of_it(
        self, office: Office, server: RecordingServer, superuser: asyncpg.Connection
    ) -> None:
        server.offer("write", Held())
        worker = await opened(office, server, timeout={"call": 0.3})
        with pytest.raises(InDoubt):
            await worker.call("notes__write", text="a")
        worker = await self.changed(office, server, superuser)
        with pytest.raises(InDoubt):
            await worker.call("notes__write", text="a")

    async def changed(
        self, office: Office, server: RecordingServer, superuser: asyncpg.Connection
    ) -> Worker:
        server.offer("write", schema=NOTHING_MORE)
        await superuser.execute("UPDATE connections SET listing = NULL, listing_version = NULL")
        return await taken_over(office, superuser)


class TestACallThatIsBegunAgain:
    """Its time was over, and to repeat it by itself does no harm."""

    @pytest.mark.parametrize(
        "change", ["enabled = false", "version = version + 1"], ids=["switched off", "renewed"]
    )
    async def test_is_in_doubt_where_the_connection_is_changed_before_it_is(
        self,
        office: Office,
        server: RecordingServer,
        superuser: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
        change: str,
    ) -> None:
        held = Held()
        server.offer("write", held)
        worker = await opened(office, server, timeout={"call": 0.5}, **REPEATABLE)
        current = worker.services.credentials.current

        async def raced(*about: Any) -> Any:
            read = await current(*about)
            if await superuser.fetchval("SELECT count(*) FROM effects"):
                await superuser.execute(f"UPDATE connections SET {change}")
            return read

        monkeypatch.setattr(worker.services.credentials, "current", raced)
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        await held.begun.wait()
        assert len(server.calls) == 1


class TestARunThatIsStopped:
    """Before it comes to the call."""

    async def test_has_the_result_of_a_call_that_was_made(
        self, office: Office, server: RecordingServer
    ) -> None:
        server.offer("write", "it was written")
        worker = await opened(office, server)
        await worker.call("notes__write")
        equipment = await worker.equip()
        assert (
            await make(equipment, "notes__write", {}, "call", stopped())
        ).text == "it was written"
        other = await make(equipment, "notes__write", {}, "another", stopped())
        assert (outcome_of(other), len(server.calls)) == ("stopped", 1)

    async def test_does_not_say_that_one_was_not_begun_of_which_nobody_knows(
        self, office: Office, server: RecordingServer
    ) -> None:
        server.offer("write", Held())
        worker = await opened(office, server, timeout={"call": 0.3})
        with pytest.raises(InDoubt):
            await worker.call("notes__write")
        equipment = await worker.equip()
        assert outcome_of(await make(equipment, "notes__write", {}, "call", stopped())) == "lost"


class TestADatabaseThatIsAwayForAMoment:
    async def test_leaves_in_doubt_what_an_earlier_attempt_may_have_begun(
        self,
        office: Office,
        server: RecordingServer,
        superuser: asyncpg.Connection,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        server.offer("write")
        worker = await opened(office, server)

        async def away(*_: object, **__: object) -> None:
            raise DatabaseUnavailable

        monkeypatch.setattr(Ledger, "_begin", away)
        first = await worker.call("notes__write", "first")
        assert first.text == "The call could not be recorded, so it was not made. Try again later."
        later = await taken_over(office, superuser)
        with pytest.raises(InDoubt):
            await later.call("notes__write", "second")
        assert not server.calls
