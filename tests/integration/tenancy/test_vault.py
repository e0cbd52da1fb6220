"""The vault on real rows: whose they are is part of what opens them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from uuid import UUID

import asyncpg
import pytest

from tenancy.database.tenant import TenantDatabase
from tenancy.errors import UserUnavailable
from tenancy.principal import Principal
from tenancy.vault import Vault, VaultNotConfigured, VaultUnreadable, WrappingKeyMissing
from tenancy.vault.data_keys import destroy_data_keys, read_data_keys
from tenancy.vault.places import CREDENTIAL, credential_field
from tests.support.tenancy import TestDatabase, set_user_state
from tests.support.vaults import vault_of

SECRET = b"hers alone"


@pytest.fixture
def vault(tenants: TenantDatabase) -> Vault:
    return vault_of(tenants, "k1")


@contextlib.asynccontextmanager
async def another_process(database: TestDatabase) -> AsyncIterator[TenantDatabase]:
    """Connections of its own."""
    door = TenantDatabase(database.settings("service"))
    try:
        yield door
    finally:
        await door.close()


class TestASecret:
    async def test_is_read_by_any_process_with_the_keys(
        self, vault: Vault, database: TestDatabase, alice: Principal
    ) -> None:
        sealed = await vault.seal(alice, "purpose", "field", SECRET)
        async with another_process(database) as door:
            assert await vault_of(door, "k0", "k1").open(alice, "purpose", "field", sealed)

    async def test_is_read_nowhere_else(
        self, vault: Vault, alice: Principal, bob: Principal
    ) -> None:
        sealed = await vault.seal(alice, "purpose", "field", SECRET)
        await vault.seal(bob, "purpose", "field", b"his")
        for who, purpose, field in (
            (bob, "purpose", "field"),
            (alice, "other", "field"),
            (alice, "purpose", "other"),
        ):
            with pytest.raises(VaultUnreadable):
                await vault.open(who, purpose, field, sealed)
        assert await vault.open(alice, "purpose", "field", sealed) == SECRET

    async def test_is_not_read_with_another_users_data_key_in_the_place_of_ones_own(
        self, vault: Vault, superuser: asyncpg.Connection, alice: Principal, bob: Principal
    ) -> None:
        of = {who: await vault.seal(who, "purpose", "field", SECRET) for who in (alice, bob)}
        await superuser.execute(
            """
            UPDATE data_keys k SET wrapped = o.wrapped FROM data_keys o
            WHERE k.user_id <> o.user_id
            """
        )
        for who, sealed in of.items():
            with pytest.raises(VaultUnreadable):
                await vault.open(who, "purpose", "field", sealed)
            with pytest.raises(VaultUnreadable):
                await vault.seal(who, "purpose", "field", SECRET)

    async def test_of_another_is_not_read_with_both_its_row_and_its_key(
        self, vault: Vault, superuser: asyncpg.Connection, alice: Principal, bob: Principal
    ) -> None:
        """Whoever can write rows moves all that Alice has to Bob."""
        sealed = await vault.seal(alice, "purpose", "field", SECRET)
        await superuser.execute("UPDATE data_keys SET user_id = $1", bob.user_id)
        with pytest.raises(VaultUnreadable):
            await vault.open(bob, "purpose", "field", sealed)


class TestAFirstDataKey:
    async def test_is_made_once_by_many_at_once(
        self, database: TestDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        async with contextlib.AsyncExitStack() as stack:
            doors = [await stack.enter_async_context(another_process(database)) for _ in range(2)]
            vaults = [vault_of(door, "k1") for door in doors]
            sealed = await asyncio.gather(
                *(vaults[n % 2].seal(alice, "p", str(n), SECRET) for n in range(8))
            )
            for n, each in enumerate(sealed):
                assert await vaults[(n + 1) % 2].open(alice, "p", str(n), each) == SECRET
        assert await superuser.fetchval("SELECT count(*) FROM data_keys") == 1

    async def test_is_not_made_for_reading(
        self, vault: Vault, tenants: TenantDatabase, alice: Principal, bob: Principal
    ) -> None:
        sealed = await vault.seal(alice, "p", "f", SECRET)
        with pytest.raises(VaultUnreadable):
            await vault.open(bob, "p", "f", sealed)
        assert await read_data_keys(tenants, bob) == []


class TestMissingKeys:
    async def test_are_said_to_be_missing(
        self, vault: Vault, tenants: TenantDatabase, alice: Principal
    ) -> None:
        sealed = await vault.seal(alice, "p", "f", SECRET)
        without = vault_of(tenants)
        for attempt in (
            without.seal(alice, "p", "f", SECRET),
            without.open(alice, "p", "f", sealed),
        ):
            with pytest.raises(VaultNotConfigured):
                await attempt
        with pytest.raises(WrappingKeyMissing) as missing:
            await vault_of(tenants, "k2").open(alice, "p", "f", sealed)
        assert missing.value.key_id == "k1"
        assert "k1" not in str(missing.value)

    async def test_of_the_same_id_but_another_key_open_nothing(
        self, tenants: TenantDatabase, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        sealed = await vault_of(tenants, "k2").seal(alice, "p", "f", SECRET)
        await superuser.execute("UPDATE data_keys SET wrapping_key = 'k1'")
        with pytest.raises(VaultUnreadable):
            await vault_of(tenants, "k1").open(alice, "p", "f", sealed)


class TestDestroyingDataKeys:
    async def test_leaves_nothing_that_opens_and_nothing_new(
        self,
        vault: Vault,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        bob: Principal,
    ) -> None:
        hers, his = [await vault.seal(who, "p", "f", SECRET) for who in (alice, bob)]
        await set_user_state(superuser, alice.user_id, "erasing")
        assert await destroy_data_keys(tenants, alice) == 1
        with pytest.raises(VaultUnreadable):
            await vault.open(alice, "p", "f", hers)
        with pytest.raises(UserUnavailable):
            await vault.seal(alice, "p", "f", SECRET)
        assert await vault.open(bob, "p", "f", his) == SECRET

    @pytest.mark.parametrize("state", ["active", "suspended"])
    async def test_is_for_nobody_who_stays(
        self,
        vault: Vault,
        tenants: TenantDatabase,
        superuser: asyncpg.Connection,
        alice: Principal,
        state: str,
    ) -> None:
        await vault.seal(alice, "p", "f", SECRET)
        await set_user_state(superuser, alice.user_id, state)
        with pytest.raises(UserUnavailable):
            await destroy_data_keys(tenants, alice)
        assert len(await read_data_keys(tenants, alice)) == 1


class TestTwoPeoplesConnections:
    """Whoever can write rows swaps them; what is in them is still its owner's only."""

    async def test_do_not_open_with_their_credentials_swapped(
        self, vault: Vault, superuser: asyncpg.Connection, alice: Principal, bob: Principal
    ) -> None:
        for who in (alice, bob):
            made: UUID = await superuser.fetchval(
                "INSERT INTO connections (user_id, server) VALUES ($1, 's')"
                " RETURNING connection_id",
                who.user_id,
            )
            sealed = await vault.seal(who, CREDENTIAL, credential_field(made, "key"), SECRET)
            await superuser.execute(
                "UPDATE connections SET credential = $2, credential_kind = 'key'"
                " WHERE connection_id = $1",
                *(made, sealed),
            )
        for swap in ("", ", connection_id = o.connection_id"):
            change = superuser.transaction()
            await change.start()
            await superuser.execute(
                f"UPDATE connections c SET credential = o.credential{swap} FROM connections o"
                " WHERE c.user_id <> o.user_id"
            )
            for row in await superuser.fetch("SELECT * FROM connections"):
                who = alice if row["user_id"] == alice.user_id else bob
                field = credential_field(row["connection_id"], "key")
                with pytest.raises(VaultUnreadable):
                    await vault.open(who, CREDENTIAL, field, row["credential"])
            await change.rollback()
        for row in await superuser.fetch("SELECT * FROM connections"):
            who = alice if row["user_id"] == alice.user_id else bob
            field = credential_field(row["connection_id"], "key")
            assert await vault.open(who, CREDENTIAL, field, row["credential"]) == SECRET
