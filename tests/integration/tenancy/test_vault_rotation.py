"""Keys are replaced while the service works, and nobody's credential is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from app.admin.vault import VaultRotation, rotate, vault_keys
from app.connections.keeping import CredentialKeeper
from app.connections.rows import ConnectionRows
from app.settings import Settings
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import UserUnavailable
from tenancy.principal import Principal
from tenancy.vault.data_keys import read_data_keys
from tenancy.vault.envelope import version_of
from tests.integration.admin.commands import Commands
from tests.support.tenancy import PATIENCE, TestDatabase, set_user_state, sign_in
from tests.support.vaults import keys_of, vault_of

SERVER = "tickets"


class Scene:
    """People with credentials under the key ``old``; an operator who has both keys."""

    def __init__(self, database: TestDatabase, tenants: TenantDatabase) -> None:
        self.rows = ConnectionRows(tenants)
        self.keeper = CredentialKeeper(self.rows, vault_of(tenants, "new", "old"))
        self._database = database
        self._tenants = tenants

    def settings(self, *ids: str) -> Settings:
        return Settings.model_validate(
            {
                "database_url": self._database.dsn("service"),
                "maintenance_database_url": self._database.dsn("maintenance"),
                "dispatch_database_url": self._database.dsn("dispatch"),
                "vault_keys": keys_of(*ids) if ids else None,
            }
        )

    async def keep(self, person: Principal, key: str, *, under: str = "old") -> UUID:
        """A credential of somebody's, kept by a process that wraps under this key."""
        row = await self.rows.store(person, SERVER, own=False)
        assert row is not None
        keeper = CredentialKeeper(self.rows, vault_of(self._tenants, under))
        assert await keeper.keep(person, row, "key", key.encode())
        return row

    async def kept(self, person: Principal) -> str:
        """The credential, as a process with both keys reads it."""
        stored = await self.rows.credential(person, SERVER)
        assert stored is not None
        plain = self.keeper.opened(person, stored)
        assert plain is not None
        return plain.decode()

    async def rotate(self, older_than: float | None = None) -> VaultRotation:
        return await rotate(self.settings("new", "old"), older_than_seconds=older_than)

    async def in_use(self) -> dict[str, int]:
        found = await vault_keys(self.settings("new", "old"))
        return {each.key_id: each.data_keys for each in found if each.data_keys}


@pytest.fixture
def scene(database: TestDatabase, tenants: TenantDatabase) -> Scene:
    return Scene(database, tenants)


@pytest.fixture
async def people(tenants: TenantDatabase, scene: Scene) -> AsyncIterator[list[Principal]]:
    found = [await sign_in(tenants, f"person {n}") for n in range(3)]
    for n, person in enumerate(found):
        await scene.keep(person, f"key of {n}")
    yield found
    for n, person in enumerate(found):
        assert await scene.kept(person) == f"key of {n}"


class TestWrappingAnew:
    async def test_puts_everybodys_data_key_under_the_first_key(
        self, scene: Scene, people: list[Principal]
    ) -> None:
        assert await scene.in_use() == {"old": 3}
        done = await scene.rotate()
        assert (done.users, done.rewrapped, done.failed) == (3, 3, 0)
        assert (done.new_data_keys, done.resealed, done.left) == (0, 0, 0)
        assert await scene.in_use() == {"new": 3}
        assert (await scene.rotate()).users == 0

    async def test_is_for_the_suspended_too_and_not_for_those_who_are_being_erased(
        self, scene: Scene, superuser: asyncpg.Connection, people: list[Principal]
    ) -> None:
        suspended, leaving, _ = people
        await set_user_state(superuser, suspended.user_id, "suspended")
        await set_user_state(superuser, leaving.user_id, "erasing")
        done = await scene.rotate()
        assert (done.users, done.rewrapped, done.failed) == (2, 2, 0)
        assert await scene.in_use() == {"new": 2, "old": 1}

    async def test_is_done_for_the_others_where_a_key_is_missing(
        self, scene: Scene, tenants: TenantDatabase, people: list[Principal]
    ) -> None:
        stranded = await sign_in(tenants, "stranded")
        await scene.keep(stranded, "under a lost key", under="older")
        done = await scene.rotate()
        assert (done.users, done.rewrapped, done.failed) == (4, 3, 1)
        assert done.why == {"vault_key_missing older": 1}
        assert await scene.in_use() == {"new": 3, "older": 1}

    async def test_can_be_done_by_two_at_once(self, scene: Scene, people: list[Principal]) -> None:
        both = await asyncio.gather(scene.rotate(0), scene.rotate(0))
        assert sum(done.rewrapped for done in both) == 3
        assert [done.failed for done in both] == [0, 0]
        assert await scene.in_use() == {"new": 3}


class TestNewDataKeys:
    async def test_take_the_places_of_the_old_ones(
        self, scene: Scene, tenants: TenantDatabase, people: list[Principal]
    ) -> None:
        done = await scene.rotate(0)
        assert (done.new_data_keys, done.resealed, done.left) == (3, 3, 0)
        for person in people:
            (key,) = await read_data_keys(tenants, person)
            assert (key.version, key.wrapping_key) == (2, "new")
            stored = await scene.rows.credential(person, SERVER)
            assert stored is not None
            assert stored.sealed is not None
            assert version_of(stored.sealed) == 2
            assert stored.version == 2  # the same credential: no connection is closed for it

    async def test_are_not_made_again_by_a_rotation_that_goes_on(
        self, scene: Scene, people: list[Principal]
    ) -> None:
        await scene.rotate(0)
        assert (await scene.rotate(3600)).new_data_keys == 0

    async def test_leave_an_old_one_while_something_under_way_needs_it(
        self,
        scene: Scene,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        people: list[Principal],
    ) -> None:
        person = people[0]
        sealed = await vault_of(tenants, "old").seal(person, "authorization", "state", b"verifier")
        await superuser.execute(
            """
            INSERT INTO authorizations (user_id, state_hash, server, sealed, expires_at)
            VALUES ($1, 'state', $2, $3, now() + interval '1 hour')
            """,
            *(person.user_id, SERVER, sealed),
        )
        assert (await scene.rotate(0)).left == 1
        opened = await vault_of(tenants, "new").open(person, "authorization", "state", sealed)
        assert opened == b"verifier"
        await superuser.execute("DELETE FROM authorizations")
        done = await scene.rotate()
        assert (done.users, done.left) == (1, 0)
        assert len(await read_data_keys(tenants, person)) == 1


class TestUnderLoad:
    async def test_what_is_kept_meanwhile_opens_afterwards(
        self, scene: Scene, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        """People set keys and have them used while one rotation follows another."""
        last: dict[UUID, str] = {}
        begun = {person.user_id: asyncio.Event() for person in (alice, bob)}
        over = asyncio.Event()

        async def use(person: Principal) -> None:
            row = await scene.keep(person, "0")
            for n in count(1):
                assert await scene.keeper.keep(person, row, "key", str(n).encode())
                last[person.user_id] = str(n)
                begun[person.user_id].set()
                assert await scene.kept(person) == str(n)
                if over.is_set():
                    return

        users = [asyncio.create_task(use(person)) for person in (alice, bob)]
        try:
            async with asyncio.timeout(PATIENCE):
                for each in begun.values():
                    await each.wait()
            done = [await scene.rotate(0) for _ in range(8)]
        finally:
            over.set()
        await asyncio.gather(*users)
        assert sum(each.new_data_keys for each in done) >= 8
        assert [each.failed for each in done] == [0] * 8
        await scene.rotate()
        for person in (alice, bob):
            assert await scene.kept(person) == last[person.user_id]
            assert len(await read_data_keys(tenants, person)) == 1

    async def test_what_was_sealed_under_a_key_that_went_is_sealed_again(
        self, scene: Scene, tenants: TenantDatabase, alice: Principal
    ) -> None:
        row = await scene.keep(alice, "before")
        vault = vault_of(tenants, "old")
        late = await vault.seal(alice, "connection", f"{row}/key", b"too late")
        await scene.rotate(0)
        bounds = {"expires_in": None, "expected_version": None, "refreshed": False}
        assert await scene.rows.keep(alice, row, "key", late, **bounds) == "reseal"  # type: ignore[arg-type]
        assert await scene.kept(alice) == "before"

    async def test_a_suspended_persons_is_not_changed_but_by_the_operator(
        self, scene: Scene, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        row = await scene.keep(alice, "before")
        await set_user_state(superuser, alice.user_id, "suspended")
        with pytest.raises(UserUnavailable):
            await scene.keeper.keep(alice, row, "key", b"after")
        assert (await scene.rotate(0)).resealed == 1
        assert await scene.kept(alice) == "before"


class TestTheCommands:
    @pytest.fixture
    def admin(self, scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
        settings = scene.settings("new", "old")
        monkeypatch.setenv("STOA_DATABASE_URL", settings.required("database_url"))
        monkeypatch.setenv("STOA_VAULT_KEYS", keys_of("new", "old"))
        return Commands(monkeypatch, settings, tmp_path)

    async def test_say_what_is_to_be_done_do_it_and_say_what_may_go(
        self, admin: Commands, people: list[Principal]
    ) -> None:
        status, said = await admin("vault", "status")
        assert status == 3
        assert "run `stoa admin vault rotate`" in said
        status, said = await admin("vault", "rotate")
        assert (status, "3 data keys put under the first key" in said) == (0, True)
        status, said = await admin("vault", "status")
        assert status == 0
        assert "may go" in next(line for line in said.splitlines() if line.startswith("old"))

    async def test_name_a_key_that_is_missing_and_show_no_key(
        self, admin: Commands, monkeypatch: pytest.MonkeyPatch, people: list[Principal]
    ) -> None:
        monkeypatch.setenv("STOA_VAULT_KEYS", keys_of("new"))
        status, said = await admin("vault", "status")
        assert status == 1
        assert "missing" in next(line for line in said.splitlines() if line.startswith("old"))
        status, rotated = await admin("vault", "rotate")
        assert status == 1
        assert "Could not be done for 3: vault_key_missing old." in rotated
        assert keys_of("new").partition(":")[2] not in said + rotated

    async def test_without_keys_rotate_nothing(
        self, admin: Commands, monkeypatch: pytest.MonkeyPatch, people: list[Principal]
    ) -> None:
        monkeypatch.delenv("STOA_VAULT_KEYS")
        status, said = await admin("vault", "rotate")
        assert (status, "has not set up a vault" in said) == (1, True)
        assert (await admin("vault", "status"))[0] == 1
