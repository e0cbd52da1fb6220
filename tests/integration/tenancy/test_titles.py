"""Conversations are found by their titles, however many words are asked for."""

from __future__ import annotations

import asyncpg
import pytest
import sqlalchemy as sa

from tenancy.database.tenant import TenantDatabase
from tenancy.principal import Principal
from tenancy.tables import threads
from tests.support.tenancy import make_thread

FIND = "SELECT title FROM tenant.find_titles($1, $2, NULL, 10)"
TOLD = """
CREATE OR REPLACE FUNCTION tenant.folded(p_text text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN RAISE NOTICE 'folded'; RETURN lower(p_text); END $$
"""
TITLES = ("The night train to Vienna", "Trains at night", "A day in Vienna")


@pytest.fixture
async def titled(tenants: TenantDatabase, alice: Principal) -> None:
    """Conversations of hers, the newest last."""
    for title in TITLES:
        thread_id = await make_thread(tenants, alice)
        async with tenants.writing(alice) as tx:
            of_it = threads.c.thread_id == thread_id
            await tx.change(sa.update(threads).where(of_it).values(title=title))


@pytest.mark.usefixtures("titled")
class TestASearch:
    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("night train", [TITLES[0], TITLES[1]]),
            ("train night train  night", [TITLES[1], TITLES[0]]),
            ("trains", [TITLES[1]]),
            ("Vienna", [TITLES[2], TITLES[0]]),
            ("nowhere night", []),
        ],
    )
    async def test_finds_what_has_every_word(
        self, superuser: asyncpg.Connection, alice: Principal, query: str, found: list[str]
    ) -> None:
        rows = await superuser.fetch(FIND, alice.user_id, query)
        assert [row["title"] for row in rows] == found

    async def test_reads_each_title_once_for_all_words(
        self, superuser: asyncpg.Connection, alice: Principal
    ) -> None:
        told: list[object] = []

        def hear(_connection: object, message: object) -> None:
            told.append(message)

        transaction = superuser.transaction()
        await transaction.start()
        try:
            await superuser.execute(TOLD)
            superuser.add_log_listener(hear)
            await superuser.fetch(FIND, alice.user_id, "night t tr tra trai train o to")
        finally:
            superuser.remove_log_listener(hear)
            await transaction.rollback()
        assert len(told) == len(TITLES) + 1  # and the query
