"""Operators erase people, and look at erasures: over HTTP and on the command line."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.integration.admin.commands import Commands
from tests.integration.admin.conftest import answer, id_of, start
from tests.support.service import RunningService
from tests.support.tenancy import PATIENCE, TestDatabase
from tests.support.vaults import keys_of


@pytest.fixture
def stoa_admin(
    service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Commands:
    """The commands of an operator who has the signing keys, too."""
    monkeypatch.setenv("STOA_SIGNING_KEYS", keys_of("signing"))
    return Commands(monkeypatch, service.settings, tmp_path)


async def done(operator: httpx.AsyncClient, path: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        while True:
            found: dict[str, Any] = await answer(operator, "GET", path)
            if found["state"] == "done":
                return found
            await asyncio.sleep(0.05)


class TestOverHttp:
    async def test_somebody_is_erased_and_the_receipt_is_there(
        self, operator: httpx.AsyncClient, person: httpx.AsyncClient
    ) -> None:
        user_id = await id_of(person)
        await start(person)
        begun = await operator.delete(f"/admin/users/{user_id}")
        assert begun.status_code == 202
        path = begun.headers["Location"]
        assert path == f"/admin/erasures/{begun.json()['erasure_id']}"
        found = await done(operator, path)
        assert found["requested_by"] == "operator"
        assert found["deleted"]["runs"] == 1
        assert found["receipt"].count(".") == 2
        again = await operator.delete(f"/admin/users/{user_id}")
        assert (again.status_code, again.json()["code"]) == (404, "user_not_found")
        listed = await answer(operator, "GET", "/admin/erasures", params={"state": "done"})
        assert found in listed

    async def test_nobody_unknown_is_erased(self, operator: httpx.AsyncClient) -> None:
        refused = await operator.delete(f"/admin/users/{uuid4()}")
        assert (refused.status_code, refused.json()["code"]) == (404, "user_not_found")
        unknown = await operator.get(f"/admin/erasures/{uuid4()}")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "erasure_not_found")

    async def test_erasures_are_listed_in_pages_the_newest_first(
        self, operator: httpx.AsyncClient, service: RunningService
    ) -> None:
        made = []
        for _ in range(3):
            user_id = await id_of(service.client(f"leaver {uuid4().hex}"))
            made.append((await operator.delete(f"/admin/users/{user_id}")).json()["erasure_id"])
        first = await operator.get("/admin/erasures", params={"limit": 2})
        assert [each["erasure_id"] for each in first.json()] == [made[2], made[1]]
        assert int(first.headers["X-Pagination-Total"]) >= 3
        assert first.headers["X-Pagination-Next"] == "2"
        second = await operator.get("/admin/erasures", params={"limit": 1, "offset": 2})
        assert second.json()[0]["erasure_id"] == made[0]
        assert (await operator.get("/admin/erasures", params={"state": "gone"})).status_code == 422


class TestOnTheCommandLine:
    async def test_somebody_is_erased_and_the_receipt_verifies(
        self,
        stoa_admin: Commands,
        person: httpx.AsyncClient,
        service: RunningService,
        tmp_path: Path,
    ) -> None:
        user_id = await id_of(person)
        status, said = await stoa_admin("erase", user_id, "--yes", "--wait", "--json")
        assert status == 0, said
        erasure, document = document_in(said)
        assert (erasure["state"], erasure["requested_by"]) == ("done", "operator")
        (tmp_path / "receipt").write_text(erasure["receipt"])
        (tmp_path / "document.json").write_text(document)
        for named in (["receipt"], ["document.json"]):
            status, claims = await stoa_admin("receipt", *named)
            assert (status, json.loads(claims)["erasure_id"]) == (0, erasure["erasure_id"])
        _, shown = await stoa_admin("erasures", "show", erasure["erasure_id"])
        assert erasure["receipt"] in shown.splitlines()  # to be copied in one piece
        published = f"{service.url}/.well-known/jwks.json"
        assert (await stoa_admin("receipt", "receipt", "--jwks", published))[0] == 0
        (tmp_path / "jwks.json").write_bytes((await service.client(None).get(published)).content)
        assert (await stoa_admin("receipt", "receipt", "--jwks", "jwks.json"))[0] == 0

    async def test_a_receipt_that_does_not_verify_is_told_by_the_exit_status(
        self, stoa_admin: Commands, tmp_path: Path
    ) -> None:
        (tmp_path / "receipt").write_text("a.b.c")
        (tmp_path / "empty.json").write_text("{}")
        for file in ("receipt", "empty.json"):
            status, said = await stoa_admin("receipt", file)
            assert (status, said) == (1, "stoa: This is no receipt.\n")
        assert (await stoa_admin("receipt", "receipt", "--jwks", "http://example.org/"))[0] == 2
        assert (await stoa_admin("receipt", "nowhere"))[0] == 2

    async def test_asks_before_it_erases_anybody(
        self,
        stoa_admin: Commands,
        person: httpx.AsyncClient,
        typing_in: Callable[[str], None],
    ) -> None:
        user_id = await id_of(person)
        for said in ("\n", "yes\n", f"{user_id[:7]}\n"):
            typing_in(said)
            assert (await stoa_admin("erase", user_id))[0] == 1
        assert await id_of(person) == user_id
        typing_in(f"{user_id[:8]}\n")
        assert (await stoa_admin("erase", user_id))[0] == 0

    async def test_shows_erasures(self, stoa_admin: Commands, person: httpx.AsyncClient) -> None:
        _, said = await stoa_admin("erase", await id_of(person), "--yes", "--wait", "--json")
        erasure_id = document_in(said)[0]["erasure_id"]
        status, shown = await stoa_admin("erasures", "show", erasure_id)
        assert status == 0
        assert all(word in shown for word in (erasure_id, "done", "Receipt", "users"))
        assert erasure_id in (await stoa_admin("erasures", "list", "--state", "done"))[1]
        assert (await stoa_admin("erasures", "show", str(uuid4())))[0] == 1

    async def test_shows_where_an_erasure_is_and_which_workers_it_waits_for(
        self, stoa_admin: Commands, person: httpx.AsyncClient, service: RunningService
    ) -> None:
        silent = uuid4()
        superuser = await TestDatabase(service.postgres, service.database).connect("owner")
        await superuser.execute(
            "INSERT INTO workers (worker_id, host, pid, started_at, lease_until)"
            " VALUES ($1, 'elsewhere', 1, now(), now() + interval '1 hour')",
            silent,
        )
        _, said = await stoa_admin("erase", await id_of(person), "--yes", "--json")
        erasure_id = document_in(said)[0]["erasure_id"]
        async with asyncio.timeout(PATIENCE):
            shown = ""
            while "Waits for" not in shown or " stop " not in shown:
                _, shown = await stoa_admin("erasures", "show", erasure_id)
        assert str(silent) in shown
        await superuser.execute("DELETE FROM workers WHERE worker_id = $1", silent)
        await superuser.close()
        async with asyncio.timeout(PATIENCE):
            while "Receipt" not in shown:
                _, shown = await stoa_admin("erasures", "show", erasure_id)
        assert "Waits for" not in shown

    async def test_verifies_no_receipt_without_a_key_and_says_where_one_is(
        self, stoa_admin: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("STOA_SIGNING_KEYS")
        (tmp_path / "receipt").write_text("a.b.c")
        status, said = await stoa_admin("receipt", "receipt")
        assert status == 2
        assert "--jwks" in said

    async def test_erases_nobody_unknown(self, stoa_admin: Commands) -> None:
        status, said = await stoa_admin("erase", str(uuid4()), "--yes")
        assert (status, said) == (1, "stoa: There is no such user.\n")


def document_in(said: str) -> tuple[dict[str, Any], str]:
    """What a command printed, among the lines of the service that runs in this process, too."""
    begin = said.index("{\n")
    found, end = json.JSONDecoder().raw_decode(said, begin)
    return found, said[begin:end]


@pytest.fixture
def typing_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """What is typed in at the next command."""
    return lambda said: monkeypatch.setattr("sys.stdin", io.StringIO(said))
