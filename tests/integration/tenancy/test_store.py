"""LangGraph's store: namespaces that nobody can leave, and nothing shared between callers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import asyncpg
import pytest
from langgraph.store.base import MatchCondition, PutOp

from tenancy.checkpoints.pool import CheckpointPool, Fence
from tenancy.checkpoints.store import TenantStore
from tenancy.database.crossing import DispatchDatabase
from tenancy.database.tenant import TenantDatabase
from tenancy.errors import LeaseLost, UserUnavailable
from tenancy.principal import Principal
from tests.support.tenancy import (
    claimed_run,
    expire_leases,
    make_thread,
    set_user_state,
    sign_in,
)

AWKWARD = ("u1", "u12", "u_1", "%")


async def people(tenants: TenantDatabase, *subjects: str) -> list[Principal]:
    return [await sign_in(tenants, subject) for subject in subjects]


async def contents(store: TenantStore) -> dict[tuple[tuple[str, ...], str], Any]:
    """Everything that a store shows."""
    found = await store.asearch((), limit=1000)
    return {(item.namespace, item.key): item.value for item in found}


class TestManyPeopleAtOnce:
    async def test_end_with_exactly_what_is_theirs(
        self, tenants: TenantDatabase, checkpoints: CheckpointPool
    ) -> None:
        crowd = await people(tenants, *(f"person {n}" for n in range(50)))
        stores = [TenantStore(checkpoints, person.user_id) for person in crowd]
        work = [
            stores[n % 50].aput(("notes", "shared"), f"key {n // 50}", {"of": n % 50})
            for n in range(200)
        ]
        Random(7).shuffle(work)
        before = asyncio.all_tasks()
        await asyncio.gather(*work)
        for who, store in enumerate(stores):
            expected = {(("notes", "shared"), f"key {n}"): {"of": who} for n in range(4)}
            assert await contents(store) == expected
        # What others had left to do may be done by now.
        assert asyncio.all_tasks() <= before


class TestAwkwardNames:
    """Subjects and labels that are prefixes of each other, or mean something to LIKE."""

    @pytest.fixture
    async def stores(
        self, tenants: TenantDatabase, checkpoints: CheckpointPool
    ) -> dict[str, TenantStore]:
        made = {}
        for person, name in zip(await people(tenants, *AWKWARD), AWKWARD, strict=True):
            made[name] = store = TenantStore(checkpoints, person.user_id)
            for label in AWKWARD:
                await store.aput((label, "notes"), "key", {"of": name, "in": label})
                await store.aput((label, "notes", "old"), "key", {"of": name, "in": label})
        return made

    async def test_searching_a_label_finds_that_label_of_that_person(
        self, stores: dict[str, TenantStore]
    ) -> None:
        for name, store in stores.items():
            for label in AWKWARD:
                found = await store.asearch((label,))
                assert {(i.value["of"], i.value["in"]) for i in found} == {(name, label)}
                assert {i.namespace for i in found} == {(label, "notes"), (label, "notes", "old")}

    async def test_searching_with_a_filter_stays_at_home(
        self, stores: dict[str, TenantStore]
    ) -> None:
        found = await stores["u1"].asearch((), filter={"of": "u12"})
        assert found == []

    async def test_listing_namespaces(self, stores: dict[str, TenantStore]) -> None:
        for store in stores.values():
            listed = await store.alist_namespaces()
            assert sorted(listed) == sorted(
                (label, "notes", *more) for label in AWKWARD for more in ((), ("old",))
            )
            assert sorted(await store.alist_namespaces(max_depth=1)) == sorted(
                (label,) for label in AWKWARD
            )
            assert sorted(await store.alist_namespaces(max_depth=2)) == sorted(
                (label, "notes") for label in AWKWARD
            )

    async def test_listing_by_prefix_suffix_and_wildcard(
        self, stores: dict[str, TenantStore]
    ) -> None:
        store = stores["u_1"]
        assert sorted(await store.alist_namespaces(prefix=("u1",))) == [
            ("u1", "notes"),
            ("u1", "notes", "old"),
        ]
        assert sorted(await store.alist_namespaces(prefix=("*", "notes", "old"))) == sorted(
            (label, "notes", "old") for label in AWKWARD
        )
        assert sorted(await store.alist_namespaces(suffix=("notes",))) == sorted(
            (label, "notes") for label in AWKWARD
        )
        assert sorted(await store.alist_namespaces(suffix=("*", "old"))) == sorted(
            (label, "notes", "old") for label in AWKWARD
        )
        assert await store.alist_namespaces(prefix=("%",), suffix=("old",)) == [
            ("%", "notes", "old")
        ]

    async def test_deleting_takes_one_persons_item(self, stores: dict[str, TenantStore]) -> None:
        await stores["%"].adelete(("u1", "notes"), "key")
        assert await stores["%"].aget(("u1", "notes"), "key") is None
        for name in ("u1", "u12", "u_1"):
            assert await stores[name].aget(("u1", "notes"), "key") is not None


class TestTheScope:
    async def test_is_out_of_reach_of_suffixes(
        self, tenants: TenantDatabase, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        await store.aput(("notes",), "key", {"a": 1})
        scope = str(alice.user_id)
        assert await store.alist_namespaces(suffix=("notes",)) == [("notes",)]
        assert await store.alist_namespaces(suffix=("*", "notes")) == []
        assert await store.alist_namespaces(suffix=(scope, "notes")) == []
        assert await store.alist_namespaces(suffix=("*",)) == [("notes",)]
        assert await store.alist_namespaces(prefix=(scope,)) == []

    async def test_of_another_cannot_be_named(
        self, checkpoints: CheckpointPool, alice: Principal, bob: Principal
    ) -> None:
        await TenantStore(checkpoints, alice.user_id).aput(("notes",), "key", {"a": 1})
        store, hers = TenantStore(checkpoints, bob.user_id), str(alice.user_id)
        assert await store.aget((hers, "notes"), "key") is None
        assert await store.asearch((hers,)) == []
        assert await store.alist_namespaces(prefix=(hers,)) == []
        await store.aput((hers, "notes"), "key", {"b": 1})
        await store.adelete((hers, "notes"), "key")
        assert await contents(TenantStore(checkpoints, alice.user_id)) == {
            (("notes",), "key"): {"a": 1}
        }

    async def test_is_enforced_by_the_database_where_a_namespace_lies(
        self, checkpoints: CheckpointPool, alice: Principal, bob: Principal
    ) -> None:
        """Should the scope ever be forgotten, the table's check refuses the row."""
        rows = TenantStore(checkpoints, bob.user_id)._rows
        for prefix in ((str(alice.user_id), "notes"), ("notes",)):
            with pytest.raises(Exception, match="violates check constraint"):
                await rows.abatch([PutOp(prefix, "key", {"b": 1})])

    async def test_an_unknown_condition_is_refused(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        store = TenantStore(checkpoints, alice.user_id)
        listing = store._scoped_conditions(MatchCondition("suffix", ("notes",)))
        assert listing[-1] == MatchCondition("prefix", (str(alice.user_id), "*"))


class TestUnderAFence:
    async def test_a_lost_run_stores_and_reads_nothing(
        self,
        tenants: TenantDatabase,
        dispatch: DispatchDatabase,
        checkpoints: CheckpointPool,
        superuser: asyncpg.Connection,
        alice: Principal,
    ) -> None:
        run = await claimed_run(tenants, dispatch, alice, await make_thread(tenants, alice))
        store = TenantStore(checkpoints, alice.user_id, fence=Fence(run.run_id, run.fence))
        await store.aput(("notes",), "kept", {"a": 1})
        await expire_leases(superuser)
        with pytest.raises(LeaseLost):
            await store.aput(("notes",), "late", {"a": 2})
        with pytest.raises(LeaseLost):
            await store.adelete(("notes",), "kept")
        assert await superuser.fetchval("SELECT array_agg(key) FROM store") == ["kept"]

    async def test_nothing_is_kept_about_somebody_who_is_being_erased(
        self, checkpoints: CheckpointPool, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        await set_user_state(superuser, alice.user_id, "erasing")
        with pytest.raises(UserUnavailable):
            await TenantStore(checkpoints, alice.user_id).aput(("notes",), "key", {"a": 1})
        assert await superuser.fetchval("SELECT count(*) FROM store") == 0

    async def test_blocking_calls_are_not_offered(
        self, checkpoints: CheckpointPool, alice: Principal
    ) -> None:
        with pytest.raises(RuntimeError, match="async methods"):
            TenantStore(checkpoints, alice.user_id).batch([])
