"""Taking everything along: all that is one's own, and broken where it is not whole."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import socket
import time
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import httpx
import pytest

from app.tools.stdio.folders import make_folder
from tenancy.export.columns import AS_BASE64, AS_JSON, WITHHELD
from tenancy.principal import UserId
from tests.support.limits import limit, settled_usage
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service
from tests.support.tenancy import set_user_state
from tests.support.tls import NO_AUTHORITY

PATIENCE = 30
TITLE = "Trains: to ../Größe & back?"
BLOB = (
    "INSERT INTO checkpoint_blobs (user_id, thread_id, channel, version, type, blob)"
    " VALUES ($1, $2, 'c', $3, 'msgpack', $4)"
)
MORE_THAN_IS_UNDER_WAY = 6
"""Megabytes. What a service has sent and a slow reader has not taken yet is 4 at most."""


@pytest.fixture(scope="module")
async def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mcp")


@pytest.fixture(scope="module")
async def leaving(postgres: PostgresServer, folders: Path) -> AsyncIterator[RunningService]:
    """A service with a worker and folders of tool servers. Use people of your own."""
    async with running_service(postgres, mcp_folder=folders, max_streams_per_user=3) as running:
        yield running


@pytest.fixture(scope="module")
async def superuser(leaving: RunningService) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(leaving.postgres.dsn("owner", leaving.database))
    yield connection
    await connection.close()


class Archive:
    """What somebody took along."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.status_code == 200, answer.text
        self.zip = zipfile.ZipFile(io.BytesIO(answer.content))
        self.manifest = json.loads(self.zip.read("manifest.json"))

    def rows(self, table: str) -> list[Any]:
        lines = self.zip.read(f"data/{table}.ndjson").splitlines()
        return [json.loads(line) for line in lines]

    def names(self, folder: str) -> list[str]:
        return [name for name in self.zip.namelist() if name.startswith(f"{folder}/")]


async def user_of(http: httpx.AsyncClient) -> UserId:
    return UserId(UUID((await http.get("/me")).json()["user_id"]))


async def talk(http: httpx.AsyncClient, text: str) -> str:
    """A conversation with one turn."""
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    said = {"messages": [{"role": "user", "content": text}]}
    answer = await http.post(
        f"/threads/{thread}/runs/wait", json={"assistant_id": "agent", "input": said}
    )
    assert answer.status_code == 200, answer.text
    return str(thread)


async def keep_much(
    superuser: asyncpg.Connection, http: httpx.AsyncClient, megabytes: int = MORE_THAN_IS_UNDER_WAY
) -> UserId:
    """Rows that nothing makes smaller."""
    user_id = await user_of(http)
    thread = (await http.post("/threads", json={})).json()["thread_id"]
    for number in range(megabytes):
        await superuser.execute(BLOB, user_id, UUID(thread), str(number), os.urandom(1_000_000))
    return user_id


async def take(pieces: AsyncIterator[bytes], sent: list[bytes]) -> None:
    """What comes, also where it is broken off."""
    async for piece in pieces:
        sent.append(piece)  # noqa: PERF401 - those before it is broken off count


async def until(condition: Any) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await condition():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)


@pytest.fixture(scope="module")
async def taken(
    leaving: RunningService, folders: Path, superuser: asyncpg.Connection
) -> tuple[UserId, str, Archive]:
    """What Ada took along, who talked about trains and has a credential and files."""
    http = leaving.client("ada")
    user_id = await user_of(http)
    thread = await talk(http, TITLE)
    await talk(http, "nul")
    await superuser.execute(
        "INSERT INTO connections (user_id, server, credential, credential_kind)"
        " VALUES ($1, 'own', 'the-secret', 'key')",
        user_id,
    )
    folder = make_folder(folders, user_id, "tickets")
    (folder / "con").write_text("canary")
    (folder / "link").symlink_to("/etc/hostname")
    await talk(leaving.client("bob"), "Nobody else's business")
    await settled_usage(http, calls=2)
    answer = await http.get("/me/export")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].startswith('attachment; filename="stoa-')
    return user_id, thread, Archive(answer)


class TestEverything:
    async def test_is_as_many_rows_as_the_database_has_for_every_table(
        self, taken: tuple[UserId, str, Archive], superuser: asyncpg.Connection
    ) -> None:
        user_id, _, archive = taken
        personal = await superuser.fetch(
            "SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.attname = 'user_id' AND c.relkind = 'r'"
            " AND c.relnamespace = 'public'::regnamespace"
        )
        tables = {row["relname"] for row in personal}
        assert len(tables) > 20
        counted = {
            table: await superuser.fetchval(
                f"SELECT count(*) FROM {table} WHERE user_id = $1", user_id
            )
            for table in tables
        }
        counted["audit"] = await superuser.fetchval(
            "SELECT count(*) FROM audit a JOIN audit_references r USING (reference)"
            " WHERE r.user_id = $1",
            user_id,
        )
        said = {m["table"]: m["rows"] for m in archive.manifest["members"] if "table" in m}
        assert said == counted
        assert {table: len(archive.rows(table)) for table in counted} == counted
        assert counted["threads"] == 2
        assert counted["run_events"] > 2
        assert counted["checkpoint_blobs"] > 0

    async def test_is_as_its_manifest_says(self, taken: tuple[UserId, str, Archive]) -> None:
        user_id, _, archive = taken
        assert archive.zip.testzip() is None
        *members, last = archive.zip.namelist()
        assert last == "manifest.json"
        assert [each["name"] for each in archive.manifest["members"]] == members
        for each in archive.manifest["members"]:
            data = archive.zip.read(each["name"])
            assert len(data) == each["bytes"]
            assert hashlib.sha256(data).hexdigest() == each["sha256"]
            if each["name"].endswith(("ndjson", "jsonl")):
                assert len(data.splitlines()) == each["rows"]
        assert archive.manifest["user_id"] == str(user_id)
        assert archive.manifest["version"] == 1

    async def test_has_each_conversation_for_people_and_for_programs(
        self, taken: tuple[UserId, str, Archive], leaving: RunningService
    ) -> None:
        _, thread, archive = taken
        assert archive.names("conversations") == [
            f"conversations/{name}.{form}"
            for name in ("00001-Trains to .. Größe & back", "00002-_nul")
            for form in ("md", "jsonl")
        ]
        text = archive.zip.read(archive.names("conversations")[0]).decode()
        assert f"## You\n\n> {TITLE}\n" in text
        assert "## Assistant\n" in text
        state = (await leaving.client("ada").get(f"/threads/{thread}/state")).json()
        lines = archive.zip.read(archive.names("conversations")[1]).splitlines()
        assert [json.loads(line) for line in lines] == state["values"]["messages"]

    async def test_can_be_read_where_it_was_bytes(self, taken: tuple[UserId, str, Archive]) -> None:
        _, _, archive = taken
        events = {row["event"]: row["data"] for row in archive.rows("run_events")}
        assert isinstance(events["metadata"], dict)

    async def test_has_no_secret_and_says_so(self, taken: tuple[UserId, str, Archive]) -> None:
        _, _, archive = taken
        everything = b"".join(archive.zip.read(name) for name in archive.zip.namelist())
        for form in (b"the-secret", b"the-secret".hex().encode(), b"dGhlLXNlY3JldA"):
            assert form not in everything
        assert "credential" in archive.manifest["withheld"]["connections"]
        for table, columns in WITHHELD.items():
            assert not any(set(columns) & set(row) for row in archive.rows(table))

    async def test_has_the_files_of_ones_tool_servers_and_follows_no_link(
        self, taken: tuple[UserId, str, Archive]
    ) -> None:
        _, _, archive = taken
        assert archive.names("files") == ["files/tickets/_con"]
        assert archive.zip.read("files/tickets/_con") == b"canary"
        (member,) = (m for m in archive.manifest["members"] if m["name"].startswith("files/"))
        assert member["path"] == "tickets/con"
        assert "rows" not in member
        assert archive.manifest["left_out"] == [
            {"path": "files/tickets/link", "why": "It is a link."}
        ]
        assert archive.manifest["files_on_this_host"] is True

    async def test_is_nothing_of_anybody_elses(self, taken: tuple[UserId, str, Archive]) -> None:
        _, _, archive = taken
        for name in archive.zip.namelist():
            assert b"Nobody else's business" not in archive.zip.read(name)

    async def test_is_on_record(
        self, taken: tuple[UserId, str, Archive], superuser: asyncpg.Connection
    ) -> None:
        user_id, _, archive = taken
        actions = await superuser.fetch(
            "SELECT actor, action FROM audit JOIN audit_references USING (reference)"
            " WHERE user_id = $1",
            user_id,
        )
        assert [tuple(row) for row in actions] == [("person", "exported")]
        assert [row["action"] for row in archive.rows("audit")] == ["exported"]

    async def test_of_somebody_who_has_done_nothing_is_an_archive_too(
        self, leaving: RunningService
    ) -> None:
        archive = Archive(await leaving.client("newcomer").get("/me/export"))
        assert len(archive.rows("users")) == 1
        assert archive.names("conversations") == archive.names("files") == []
        assert archive.manifest["files_on_this_host"] is False


@pytest.fixture
async def slow(leaving: RunningService) -> AsyncIterator[httpx.AsyncClient]:
    """Somebody whose side keeps next to nothing of what they do not read."""
    transport = httpx.AsyncHTTPTransport(
        verify=NO_AUTHORITY, socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 * 1024)]
    )
    headers = leaving.issuer.headers(f"slow-{uuid4()}")
    async with httpx.AsyncClient(
        transport=transport, base_url=leaving.url, headers=headers, timeout=PATIENCE
    ) as http:
        yield http


class TestWhoeverReadsSlowly:
    async def test_holds_no_transaction_open(
        self,
        leaving: RunningService,
        slow: httpx.AsyncClient,
        superuser: asyncpg.Connection,
    ) -> None:
        user_id = await keep_much(superuser, slow)
        quiet = 0

        async def is_quiet() -> bool:
            nonlocal quiet
            open_now = await superuser.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND usename LIKE '%service%' AND xact_start IS NOT NULL"
            )
            quiet = 0 if open_now else quiet + 1
            return quiet == 20

        async with slow.stream("GET", "/me/export") as answer:
            pieces = answer.aiter_raw()
            await anext(pieces)
            await until(is_quiet)
            assert leaving.web.services.streams.count(user_id) == 1
            rest = sum([len(piece) async for piece in pieces])
        assert rest > MORE_THAN_IS_UNDER_WAY * 900_000

    async def test_and_goes_away_leaves_nothing(
        self,
        leaving: RunningService,
        slow: httpx.AsyncClient,
        superuser: asyncpg.Connection,
    ) -> None:
        user_id = await keep_much(superuser, slow)
        async with slow.stream("GET", "/me/export") as answer:
            await anext(answer.aiter_raw())

        async def is_over() -> bool:
            return leaving.web.services.streams.count(user_id) == 0

        await until(is_over)
        assert (await slow.get("/me/export")).status_code == 200

    async def test_has_one_export_at_a_time(
        self,
        leaving: RunningService,
        slow: httpx.AsyncClient,
        superuser: asyncpg.Connection,
    ) -> None:
        other = leaving.client("other")
        await keep_much(superuser, slow)
        async with slow.stream("GET", "/me/export") as answer:
            pieces = answer.aiter_raw()
            await anext(pieces)
            second = await slow.get("/me/export")
            assert (second.status_code, second.json()["code"]) == (409, "export_running")
            asked = await slow.get("/me/export?dry_run=true")
            assert (asked.status_code, asked.json()["code"]) == (409, "export_running")
            assert (await other.get("/me/export")).status_code == 200

    async def test_gets_nothing_that_looks_whole_once_they_are_being_erased(
        self,
        leaving: RunningService,
        slow: httpx.AsyncClient,
        superuser: asyncpg.Connection,
    ) -> None:
        user_id = await keep_much(superuser, slow)
        async with slow.stream("GET", "/me/export") as answer:
            pieces = answer.aiter_raw()
            sent = [await anext(pieces)]
            await set_user_state(superuser, user_id, "erasing")
            with pytest.raises(httpx.RemoteProtocolError):
                await take(pieces, sent)
        with pytest.raises(zipfile.BadZipFile):
            zipfile.ZipFile(io.BytesIO(b"".join(sent)))


class TestAnHour:
    async def test_has_ten_exports_and_as_many_questions_as_one_likes(
        self, leaving: RunningService
    ) -> None:
        http = leaving.client("eager")
        began = time.monotonic()
        for _ in range(10):
            asked = await http.get("/me/export?dry_run=true")
            assert (asked.status_code, asked.content) == (204, b"")
            assert (await http.get("/me/export")).status_code == 200
        for query in ("?dry_run=true", "?dry_run=false", ""):
            refused = await http.get(f"/me/export{query}")
            assert (refused.status_code, refused.json()["code"]) == (429, "too_many_exports")
            passed = time.monotonic() - began
            assert 3600 - passed <= int(refused.headers["Retry-After"]) <= 3600
        record = (await http.get("/me/audit?limit=100")).json()
        assert [each["action"] for each in record].count("exported") == 10


class TestAnAssertion:
    async def test_that_ends_in_the_middle_ends_no_download(self, leaving: RunningService) -> None:
        """It cannot go on under the next one, as a stream does."""
        expired = leaving.client("brief", lifetime=-5, iat=int(time.time()) - 60)
        archive = Archive(await expired.get("/me/export"))  # within the leeway, it opens one
        assert len(archive.rows("users")) == 1


class TestWhatCannotBeRead:
    async def test_as_a_row_breaks_the_archive_off(
        self, leaving: RunningService, superuser: asyncpg.Connection
    ) -> None:
        http = leaving.client("broken")
        await talk(http, "Hello")
        await superuser.execute(
            "UPDATE run_events SET data = '{' WHERE user_id = $1 AND seq = 1",
            await user_of(http),
        )
        sent: list[bytes] = []
        async with http.stream("GET", "/me/export") as answer:
            assert answer.status_code == 200
            with pytest.raises(httpx.RemoteProtocolError):
                await take(answer.aiter_raw(), sent)
        assert b"PK\5\6" not in b"".join(sent)  # with which every archive ends

    async def test_as_a_conversation_is_named_and_the_rest_is_there(
        self, leaving: RunningService, superuser: asyncpg.Connection
    ) -> None:
        http = leaving.client("garbled")
        garbled, other = await talk(http, "Garbled"), await talk(http, "Other")
        for table in ("checkpoint_blobs", "checkpoint_writes"):
            await superuser.execute(
                f"UPDATE {table} SET type = 'msgpack', blob = '\\xc1' WHERE thread_id = $1",
                UUID(garbled),
            )
        archive = Archive(await http.get("/me/export"))
        assert archive.names("conversations") == [
            f"conversations/00002-Other.{form}" for form in ("md", "jsonl")
        ]
        (left_out,) = archive.manifest["left_out"]
        assert left_out["path"] == f"conversations/{garbled}"
        assert {row["thread_id"] for row in archive.rows("checkpoint_writes")} == {garbled, other}


class TestWhoMayExport:
    async def test_is_a_suspended_person_too(
        self, leaving: RunningService, superuser: asyncpg.Connection
    ) -> None:
        http = leaving.client("suspended")
        await talk(http, "Let me out")
        await set_user_state(superuser, await user_of(http), "suspended")
        archive = Archive(await http.get("/me/export"))
        assert len(archive.names("conversations")) == 2
        assert [row["action"] for row in archive.rows("audit")] == ["exported"]
        assert (await http.get("/me/data")).status_code == 200

    async def test_is_nobody_who_is_being_erased(
        self, leaving: RunningService, superuser: asyncpg.Connection
    ) -> None:
        http = leaving.client("erasing")
        await set_user_state(superuser, await user_of(http), "erasing")
        for path in ("/me/export", "/me/data", f"/threads/{uuid4()}/export"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["code"]) == (403, "user_unavailable"), path

    async def test_needs_one_of_their_streams(self, leaving: RunningService) -> None:
        http = leaving.client("streaming")
        await limit(leaving, http, streams=0)
        answer = await http.get("/me/export")
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_streams")


class TestOneConversation:
    @pytest.mark.parametrize(
        ("query", "media_type"),
        [
            ("", "text/markdown; charset=utf-8"),
            ("?format=md", "text/markdown; charset=utf-8"),
            ("?format=jsonl", "application/x-ndjson"),
        ],
    )
    async def test_is_a_file(self, leaving: RunningService, query: str, media_type: str) -> None:
        http = leaving.client("carol")
        thread = await talk(http, 'Über "Züge"')
        answer = await http.get(f"/threads/{thread}/export{query}")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == media_type
        ending = "jsonl" if "jsonl" in query else "md"
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="Uber Zuge.{ending}"; '
            f"filename*=UTF-8''%C3%9Cber%20Z%C3%BCge.{ending}"
        )
        if ending == "md":
            assert '> Über "Züge"\n' in answer.text
        else:
            state = (await http.get(f"/threads/{thread}/state")).json()
            lines = [json.loads(line) for line in answer.content.splitlines()]
            assert lines == state["values"]["messages"]

    async def test_is_in_no_other_form(self, leaving: RunningService) -> None:
        http = leaving.client("carol")
        for query in ("format=pdf", "format=md&format=x", "form=md"):
            answer = await http.get(f"/threads/{uuid4()}/export?{query}")
            assert answer.status_code == 422, query


class TestWhatIsKept:
    async def test_is_told_by_kind_with_how_long_it_is_kept(self, leaving: RunningService) -> None:
        http = leaving.client("dave")
        await talk(http, "Hello")
        answer = (await http.get("/me/data")).json()
        kinds = {each["kind"]: each for each in answer["kinds"]}
        assert kinds["conversations"]["rows"] == 1
        assert kinds["events"]["rows"] > 2
        assert kinds["memories"] == {"kind": "memories", "rows": 0, "bytes": 0, "is_whole": True}
        assert answer["total_bytes"] == sum(each["bytes"] for each in kinds.values()) > 1000
        assert "other" not in kinds
        assert answer["retention"]


class TestEveryColumn:
    async def test_of_bytes_has_been_decided_on(self, superuser: asyncpg.Connection) -> None:
        """Whether it is withheld, and if not, how it is written."""
        rows = await superuser.fetch(
            "SELECT c.relname AS name, a.attname AS col FROM pg_class c"
            " JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.atttypid = 'bytea'::regtype AND c.relkind = 'r' AND NOT a.attisdropped"
            " AND c.relname = ANY (ARRAY(SELECT name FROM tenant.own_tables()))"
        )
        present = {(row["name"], row["col"]) for row in rows}
        decided = [
            (table, column)
            for columns_of in (AS_JSON, AS_BASE64)
            for table, columns in columns_of.items()
            for column in columns
        ]
        withheld = [(table, column) for table, columns in WITHHELD.items() for column in columns]
        assert len(decided) == len(set(decided))
        assert not set(decided) & set(withheld)
        assert set(decided) <= present <= set(decided) | set(withheld)
        for table, column in withheld:
            query = "SELECT FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname = $2"
            assert await superuser.fetchrow(query, table, column) is not None
