"""No operators' route answers with anything that somebody wrote.

A sentence stands in every column that holds what people say.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest

from tests.integration.admin.conftest import ADMINS, id_of
from tests.integration.admin.recorded import record_of, routes
from tests.isolation.test_roles import CONTENT
from tests.support.every_table import fill_every_table
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service

WORD = "canary"
SENTENCES = {
    "text": f"'the {WORD} sings ' || gen_random_uuid()",
    "jsonb": f"""jsonb_build_object('the {WORD}', 'the {WORD} sings ' || gen_random_uuid())""",
    "bytea": f"convert_to('the {WORD} sings ' || gen_random_uuid(), 'UTF8')",
    "_text": f"ARRAY['the {WORD} sings']",
}
"""By the type of a column. Others hold no sentence."""


@pytest.fixture
async def service(postgres: PostgresServer) -> AsyncIterator[RunningService]:
    async with running_service(postgres, worker=False) as running:
        yield running


async def sing(superuser: asyncpg.Connection) -> set[tuple[str, str]]:
    """A sentence in every column that holds what people say; which columns those are."""
    await superuser.execute("SET session_replication_role = replica")  # no foreign keys
    for table in ("audit", "audit_texts"):  # these hold all the same
        await superuser.execute(f"ALTER TABLE {table} DISABLE TRIGGER keep_record")
    checks = "SELECT conrelid::regclass, conname FROM pg_constraint WHERE contype = 'c'"
    for table, check in await superuser.fetch(
        f"{checks} AND connamespace = 'public'::regnamespace"
    ):
        await superuser.execute(f'ALTER TABLE {table} DROP CONSTRAINT "{check}"')
    kinds = await superuser.fetch(
        "SELECT table_name, column_name, udt_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND is_generated = 'NEVER'"
    )
    sung = set()
    for table, column, kind in kinds:
        if column in CONTENT.get(table, ()) and kind in SENTENCES:
            await superuser.execute(f"UPDATE {table} SET {column} = {SENTENCES[kind]}")
            sung.add((table, column))
    return sung


class TestEveryRoute:
    async def test_is_answered_without_a_word_of_anybodys(self, service: RunningService) -> None:
        operator = service.client("the operator", groups=ADMINS)
        await id_of(operator)
        person = service.client("somebody")
        me = await id_of(person)
        thread = (await person.post("/threads", json={})).json()["thread_id"]
        body = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "."}]}}
        await person.post(f"/threads/{thread}/runs", json=body)
        async with record_of(service) as record:
            await record.superuser.execute("DELETE FROM request_rates")  # there by asking
            await fill_every_table(record.superuser)
            assert len(await sing(record.superuser)) > 60
            names = {"user_id": me, "plan": "gold", "pool": "default", "erasure_id": me}
            tried = await routes(operator)
            for method, path, example in sorted(tried, key=lambda each: each[0] == "DELETE"):
                said = await operator.request(method, path.format(**names), json=example)
                wanted = 404 if "{erasure_id}" in path else 200
                assert method != "GET" or said.status_code == wanted, (path, said.text)
                assert said.status_code < 500, (method, path, said.text)
                assert WORD not in said.text + str(said.headers), (method, path)
