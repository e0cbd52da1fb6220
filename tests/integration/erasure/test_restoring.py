"""After a restore, whoever was erased since is erased again, before anything is served."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest
import structlog
from pydantic import SecretStr

from app.erasure.errors import TombstoneUnusable
from app.erasure.restoring import Restored, apply_tombstones
from app.erasure.tombstone_files import TombstoneFolder
from app.settings import Settings, SettingsError
from tenancy.principal import UserId
from tests.integration.admin.commands import run_command
from tests.integration.erasure.stage import (
    Backups,
    erased,
    folder_of,
    led_to_its_end,
    signed_in,
)
from tests.support.issuer import TestIssuer
from tests.support.processes import web_process
from tests.support.tenancy import TestDatabase
from tests.support.tls import NO_AUTHORITY
from tests.support.vaults import keys_of


@dataclass(frozen=True)
class Restoration:
    """A database as it was before Ada was erased; Bob is there before and after."""

    settings: Settings
    erasure_id: UUID
    ada: UserId
    bob: UserId

    @property
    def folder(self) -> Path:
        return folder_of(self.settings)

    async def state_of(self, user_id: UserId) -> str | None:
        """Of somebody in the restored database."""
        connection = await asyncpg.connect(self.settings.required("owner_database_url"))
        try:
            state: str | None = await connection.fetchval(
                "SELECT state FROM users WHERE user_id = $1", user_id
            )
        finally:
            await connection.close()
        return state


@pytest.fixture(scope="module")
async def backup(backups: Backups, template: TestDatabase) -> Restoration:
    """Taken before a worker erased Ada."""
    before = backups.of(await backups.take(template.name))
    ada, bob = [(await signed_in(before, name)).user_id for name in ("ada", "bob")]
    taken = backups.of(await backups.take(name_of(before)))
    found = await erased(before, ada)
    return Restoration(taken, found.erasure_id, ada, bob)


@pytest.fixture
async def restored(backup: Restoration, tmp_path: Path) -> AsyncIterator[Restoration]:
    """The database, as it is in the backup, and a folder beside it."""
    folder = shutil.copytree(backup.folder, tmp_path / "tombstones")
    settings = backup.settings.model_copy(update={"tombstone_folder": folder})
    yield replace(backup, settings=settings)
    connection = await asyncpg.connect(settings.required("owner_database_url"))
    await connection.execute("DELETE FROM erasures; UPDATE users SET state = 'active'")
    await connection.close()


@pytest.fixture
async def copied(backups: Backups, restored: Restoration) -> Restoration:
    """The same on a copy, in which people may go for good."""
    copy = await backups.take(name_of(restored.settings))
    folder = restored.folder
    return replace(restored, settings=backups.of(copy, tombstone_folder=folder))


class TestARestoredDatabase:
    async def test_serves_nobody_who_was_erased_since_and_erases_them_again(
        self, copied: Restoration, issuer: TestIssuer, tmp_path: Path
    ) -> None:
        assert await copied.state_of(copied.ada) == "active"
        environment = environment_of(copied.settings)
        async with web_process(environment, tmp_path / "web.log") as web:
            async with client_of(issuer, "ada", web.url) as ada:
                first = await ada.get("/me")
                assert (first.status_code, first.json()["code"]) == (403, "user_unavailable")
                done = await led_to_its_end(copied.settings, copied.erasure_id)
                assert (done.requested_by, set((done.remaining or {}).values())) == (
                    "restore",
                    {0},
                )
                assert (await ada.get("/me")).json()["user_id"] != str(copied.ada)
            async with client_of(issuer, "bob", web.url) as bob:
                assert (await bob.get("/me")).json()["user_id"] == str(copied.bob)

    async def test_is_seen_to_by_a_worker_that_starts(self, copied: Restoration) -> None:
        done = await led_to_its_end(copied.settings, copied.erasure_id)
        assert done.requested_by == "restore"
        assert await copied.state_of(copied.ada) is None

    async def test_is_seen_to_by_any_number_of_processes_at_once(
        self, restored: Restoration
    ) -> None:
        done = await asyncio.gather(*(apply_tombstones(restored.settings) for _ in range(5)))
        assert {each.tombstones for each in done} == {1}
        assert restored.erasure_id in {each for one in done for each in one.begun}
        assert await restored.state_of(restored.ada) == "erasing"
        assert await restored.state_of(restored.bob) == "active"

    async def test_of_after_the_erasure_is_left_as_it_is(self, restored: Restoration) -> None:
        await apply_tombstones(restored.settings)
        assert await apply_tombstones(restored.settings) == Restored(tombstones=1)

    async def test_in_which_they_never_were_is_left_as_it_is(
        self, restored: Restoration, backups: Backups, template: TestDatabase
    ) -> None:
        folder = restored.folder
        earlier = backups.of(await backups.take(template.name), tombstone_folder=folder)
        with structlog.testing.capture_logs() as said:
            assert await apply_tombstones(earlier) == Restored(tombstones=1, unknown=1)
        assert about_erasures(said) == []

    async def test_is_compared_with_a_folder_that_is_named(
        self, restored: Restoration, tmp_path: Path
    ) -> None:
        moved = restored.folder.rename(tmp_path / "from another host")
        assert await apply_tombstones(restored.settings) == Restored()
        done = await apply_tombstones(restored.settings, moved)
        assert done.begun == (restored.erasure_id,)

    async def test_says_when_the_folder_is_not_the_one_that_was_written_to(
        self, copied: Restoration, tmp_path: Path
    ) -> None:
        await led_to_its_end(copied.settings, copied.erasure_id)
        assert (await apply_tombstones(copied.settings)).missing == 0
        elsewhere = copied.settings.model_copy(update={"tombstone_folder": tmp_path / "empty"})
        with structlog.testing.capture_logs() as said:
            assert await apply_tombstones(elsewhere) == Restored(missing=1)
        found = about_erasures(said)
        assert [(each["missing"], each["recorded"]) for each in found] == [(1, 1)]
        assert (await apply_tombstones(copied.settings, tmp_path / "empty")).missing == 0

    async def test_is_not_served_while_the_tombstones_key_is_missing(
        self, restored: Restoration
    ) -> None:
        for keys in (keys_of("k2"), None):
            without = restored.settings.model_copy(
                update={"signing_keys": None if keys is None else SecretStr(keys)}
            )
            with pytest.raises(TombstoneUnusable, match="with the key k1, which"):
                await apply_tombstones(without)
        assert await restored.state_of(restored.ada) == "active"
        rotated = SecretStr(keys_of("k2", "k1"))
        done = await apply_tombstones(
            restored.settings.model_copy(update={"signing_keys": rotated})
        )
        assert done.begun == (restored.erasure_id,)

    async def test_is_not_served_while_a_tombstone_cannot_be_read(
        self, restored: Restoration
    ) -> None:
        (restored.folder / f"{uuid4()}.json").write_text("{")
        with pytest.raises(TombstoneUnusable):
            await apply_tombstones(restored.settings)

    async def test_is_not_served_where_nobody_can_be_looked_for(
        self, restored: Restoration
    ) -> None:
        blind = restored.settings.model_copy(update={"maintenance_database_url": None})
        with pytest.raises(SettingsError, match="STOA_MAINTENANCE_DATABASE_URL"):
            await apply_tombstones(blind)

    async def test_keeps_them_once_their_tombstones_time_is_over(
        self, restored: Restoration
    ) -> None:
        folder = TombstoneFolder(restored.folder)
        (tombstone,) = folder.read()
        over = datetime.now(UTC) - timedelta(hours=1)
        folder.write(replace(tombstone, expires_at=over))
        assert await apply_tombstones(restored.settings) == Restored(tombstones=1)
        assert folder.drop_expired(datetime.now(UTC)) == 1


class TestOnTheCommandLine:
    async def test_tombstones_of_another_host_are_applied(
        self, restored: Restoration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name, value in environment_of(restored.settings).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("STOA_TOMBSTONE_FOLDER", str(tmp_path / "empty"))
        status, said = await run_command(monkeypatch, "erasures", "apply")
        assert (status, said.split()[:2]) == (0, ["0", "tombstones,"])
        folder = str(restored.folder)
        status, said = await run_command(monkeypatch, "erasures", "apply", folder, "--json")
        assert status == 0, said
        assert json.loads(said[said.index("{") :])["begun"] == [str(restored.erasure_id)]
        assert await restored.state_of(restored.ada) == "erasing"

    async def test_says_what_it_cannot_do(
        self, restored: Restoration, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.chdir(tmp_path)
        for name, value in environment_of(restored.settings).items():
            monkeypatch.setenv(name, value)
        status, said = await run_command(monkeypatch, "erasures", "apply", "nowhere")
        assert (status, said) == (2, "stoa: nowhere is no folder.\n")
        monkeypatch.setenv("STOA_SIGNING_KEYS", keys_of("k2"))
        status, said = await run_command(monkeypatch, "erasures", "apply")
        assert status == 1
        assert "which STOA_SIGNING_KEYS does not have" in said


def about_erasures(said: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Without what else goes on in this process."""
    return [each for each in said if "eras" in each["event"] or "tombstone" in each["event"]]


def environment_of(settings: Settings) -> dict[str, str]:
    """What a process is started with."""
    names = (
        *("database_url", "dispatch_database_url", "maintenance_database_url"),
        *("identity_issuer", "identity_audience", "identity_jwks_url"),
        *("signing_keys", "tombstone_folder"),
    )
    return {f"STOA_{name.upper()}": settings.required(name) for name in names}


def name_of(settings: Settings) -> str:
    """Of the database that they name."""
    return settings.required("database_url").rpartition("/")[2].partition("?")[0]


def client_of(issuer: TestIssuer, name: str, url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=url,
        headers=issuer.headers(name),
        timeout=20,
        trust_env=False,
        verify=NO_AUTHORITY,
    )
