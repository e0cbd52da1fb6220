"""Embeddings are compared alike with pgvector and without it."""

from __future__ import annotations

import asyncpg
import pytest

from tenancy.vectors import FIND_EXTENSION, similarity_statement

PAIRS = [
    ([1.0, 0.0], [1.0, 0.0], 1.0),
    ([0.6, 0.8], [1.0, 0.0], 0.6),
    ([1.0, 0.0], [-1.0, 0.0], -1.0),
    ([1.0, 0.0], [1.0, 0.0, 0.0], None),
    (None, [1.0], None),
]


class TestTwoEmbeddings:
    @pytest.mark.parametrize("with_pgvector", [True, False], ids=["pgvector", "plain"])
    async def test_are_as_far_apart(
        self, superuser: asyncpg.Connection, with_pgvector: bool
    ) -> None:
        schema = await superuser.fetchval(FIND_EXTENSION)
        if with_pgvector and schema is None:
            pytest.skip("this server has no pgvector")
        await superuser.execute(similarity_statement(schema if with_pgvector else None))
        for one, other, expected in PAIRS:
            found = await superuser.fetchval(
                "SELECT tenant.similarity($1::real[], $2::real[])", one, other
            )
            assert found == (None if expected is None else pytest.approx(expected, abs=1e-6))

    async def test_are_compared_by_pgvector_where_migrations_may_create_it(
        self, superuser: asyncpg.Connection
    ) -> None:
        offered = "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'"
        expected = "vectors" if await superuser.fetchval(offered) else None
        assert await superuser.fetchval(FIND_EXTENSION) == expected
