"""Somebody leaves who has authorized servers: their tokens are given back while they still open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import asyncpg
import pytest

from app.connections.oauth.errors import AuthorizationLost
from app.erasure import revoking
from app.erasure.revoking import Revoked, TokenRevocation
from tenancy.database.engine import DatabaseUnavailable
from tenancy.errors import UserUnavailable
from tenancy.principal import Principal
from tests.integration.connections.oauth.stage import Stage
from tests.integration.connections.process import Process, running_process
from tests.support.tenancy import TestDatabase, set_user_state


@dataclass
class Leaver:
    """Somebody who has authorized a server, and is being erased."""

    stage: Stage
    person: Principal
    process: Process
    connection: asyncpg.Connection

    @property
    def given_back(self) -> list[str]:
        return self.stage.authorization.records.given_back

    async def leave(self) -> None:
        """From here on nothing is written for them."""
        await set_user_state(self.connection, self.person.user_id, "erasing")

    async def revoke(self) -> Revoked:
        """What their erasure does with their tokens."""
        process = self.process
        revocation = TokenRevocation(process.connections, process.keeper, process.oauth)
        return await revocation.revoke_all(self.person)


@pytest.fixture
async def leaver(
    database: TestDatabase,
    stage: Stage,
    superuser: asyncpg.Connection,
    alice: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Leaver]:
    monkeypatch.setattr(revoking, "PAUSE_SECONDS", 0.0)
    async with running_process(database, stage.server) as process:
        await process.rows.store(alice, stage.server.name, own=False)
        tokens = await stage.tokens(alice)
        assert await process.changes.keep_tokens(alice, stage.server, tokens, 1)
        yield Leaver(stage, alice, process, superuser)


class TestTokensOfSomebodyWhoLeaves:
    async def test_are_given_back_and_so_again_by_whoever_takes_the_step_again(
        self, leaver: Leaver
    ) -> None:
        await leaver.leave()
        assert await leaver.revoke() == Revoked(revoked=1, not_revoked=0)
        assert len(leaver.given_back) == 2
        assert await leaver.revoke() == Revoked(revoked=1, not_revoked=0)

    async def test_are_said_to_be_left_where_nobody_takes_them(
        self, leaver: Leaver, database: TestDatabase
    ) -> None:
        """The issuer is none that the operator lets anybody ask any more."""
        await leaver.leave()
        async with running_process(database, leaver.stage.changed(origins=())) as elsewhere:
            leaver.process = elsewhere
            assert await leaver.revoke() == Revoked(revoked=0, not_revoked=1)
        assert leaver.given_back == []

    async def test_are_said_to_be_left_where_they_do_not_open_any_more(
        self, leaver: Leaver
    ) -> None:
        await leaver.connection.execute(
            "DELETE FROM data_keys WHERE user_id = $1", leaver.person.user_id
        )
        await leaver.leave()
        assert await leaver.revoke() == Revoked(revoked=0, not_revoked=1)

    @pytest.mark.parametrize("error", [RecursionError, KeyError, AuthorizationLost, TimeoutError])
    async def test_are_said_to_be_left_whatever_goes_wrong_with_them(
        self, leaver: Leaver, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
    ) -> None:
        async def broken(*_: object) -> bool:
            raise error

        monkeypatch.setattr(leaver.process.oauth, "revoke", broken)
        await leaver.leave()
        assert await leaver.revoke() == Revoked(revoked=0, not_revoked=1)

    async def test_wait_for_a_database_that_is_away(
        self, leaver: Leaver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def away(*_: object) -> bool:
            raise DatabaseUnavailable

        monkeypatch.setattr(leaver.process.oauth, "revoke", away)
        with pytest.raises(DatabaseUnavailable):
            await leaver.revoke()

    async def test_that_come_meanwhile_are_given_back_instead_of_kept(
        self, leaver: Leaver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await leaver.connection.execute(
            "UPDATE connections SET expires_at = clock_timestamp() WHERE user_id = $1",
            leaver.person.user_id,
        )
        stored = await leaver.process.rows.credential(leaver.person, leaver.stage.server.name)
        assert stored is not None
        real = leaver.process.rows.keep

        async def keep(*args: Any, **more: Any) -> Any:
            await leaver.leave()  # while the issuer was asked
            return await real(*args, **more)

        monkeypatch.setattr(leaver.process.rows, "keep", keep)
        with pytest.raises(UserUnavailable):
            await leaver.process.credentials.current(leaver.person, leaver.stage.server)
        newest = leaver.stage.authorization.records.tokens[-1]
        assert newest.is_revoked
