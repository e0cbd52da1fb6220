"""``stoa admin``: the same as over HTTP, with exit statuses that mean something."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from uuid import UUID, uuid4

import httpx
import pytest

from tests.integration.admin.commands import Commands
from tests.integration.admin.conftest import CANARY, id_of, start
from tests.integration.admin.recorded import record_of
from tests.support.held_ports import held_port
from tests.support.service import RunningService
from tests.support.tenancy import TestDatabase


@pytest.fixture
def admin(service: RunningService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Commands:
    return Commands(monkeypatch, service.settings, tmp_path)


@pytest.fixture
def at_the_database(service: RunningService) -> TestDatabase:
    return TestDatabase(service.postgres, service.database)


class TestTheQueue:
    async def test_says_who_waits_and_why_and_no_word_of_anybodys(
        self, admin: Commands, person: httpx.AsyncClient
    ) -> None:
        started = (await start(person, after_seconds=3600)).json()
        run = started["run_id"]
        me = await id_of(person)
        status, text = await admin("queue", "--limit", "1000")
        assert status == 0
        assert all(word in text for word in (me, run, "scheduled", "default", "Models"))
        status, output = await admin("queue", "--json", "--limit", "1000")
        assert status == 0
        (waiting,) = [each for each in json.loads(output)["waiting"] if each["run_id"] == run]
        assert (waiting["user_id"], waiting["why"]) == (me, "scheduled")
        assert "canary" not in (text + output).lower()
        cancelled = await person.post(f"/threads/{started['thread_id']}/runs/{run}/cancel")
        assert cancelled.status_code == 200

    async def test_is_not_looked_at_with_another_role(
        self,
        admin: Commands,
        at_the_database: TestDatabase,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("STOA_DISPATCH_DATABASE_URL", at_the_database.dsn("service"))
        status, output = await admin("queue")
        assert (status, "may do too much" in output) == (1, True)
        monkeypatch.setenv("STOA_DISPATCH_DATABASE_URL", at_the_database.dsn("maintenance"))
        status, output = await admin("queue")
        assert (status, "Name the dispatch role" in output) == (1, True)
        monkeypatch.delenv("STOA_DISPATCH_DATABASE_URL")
        status, output = await admin("queue")
        assert (status, "Set STOA_DISPATCH_DATABASE_URL" in output) == (2, True)

    async def test_is_wrong_use_for_more_than_can_be_shown(self, admin: Commands) -> None:
        assert (await admin("queue", "--limit", "1001"))[0] == 2


class TestPools:
    async def test_are_shown_and_set_in_place(
        self, admin: Commands, service: RunningService
    ) -> None:
        status, output = await admin("pools", "--set-capacity", "default=7", "--json")
        (changed,) = json.loads(output)
        assert (status, changed["capacity"]) == (0, 7)
        status, text = await admin("pools", "--set-capacity", "default=default")
        assert status == 0
        assert all(word in text for word in ("default", "open", service.model.url))
        (changed,) = json.loads((await admin("pools", "--json"))[1])
        assert changed["set_capacity"] is None

    async def test_that_fail_are_something_to_do(
        self, admin: Commands, at_the_database: TestDatabase
    ) -> None:
        superuser = await at_the_database.connect("owner")
        nobody = "http://127.0.0.1:9"
        try:
            await superuser.execute(
                "INSERT INTO model_servers (server, url) VALUES ($1, $1)", nobody
            )
            await superuser.execute(
                "INSERT INTO pools"
                " (pool, server, model, declared_capacity, state, reason, failing_since)"
                " SELECT 'away', $1, model, 1, 'failing', 'unreachable', now()"
                " FROM pools WHERE pool = 'default'",
                nobody,
            )
            status, text = await admin("pools")
            assert (status, "failing: unreachable" in text) == (3, True)
            assert (await admin("pools", "--json"))[0] == 3
        finally:
            await superuser.execute(
                "UPDATE pools SET state = 'removed', failing_since = NULL WHERE pool = 'away'"
            )
            await superuser.close()
        assert (await admin("pools"))[0] == 0

    async def test_that_are_not_there_are_a_failure_and_nonsense_is_wrong_use(
        self, admin: Commands
    ) -> None:
        missing = await admin("pools", "--set-capacity", "nobodys=1")
        assert missing == (1, "stoa: There is no such pool.\n")
        for wrong in ("default", "=1", "default=-1", "default=many", "default=10001"):
            assert (await admin("pools", "--set-capacity", wrong))[0] == 2


class TestModels:
    async def test_are_shown_and_their_prices_read_anew(
        self,
        admin: Commands,
        service: RunningService,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
    ) -> None:
        monkeypatch.setenv("STOA_OLLAMA_URL", service.model.url)
        status, text = await admin("models")
        assert status == 0, text
        assert all(word in text for word in ("smollm2:latest (default)", "available", "time"))
        published = tmp_path / "api.json"
        published.write_text('{"one": {"models": {"small": {}}}}', encoding="utf-8")
        monkeypatch.setenv("STOA_CATALOGUE_URL", str(published))
        monkeypatch.setenv("STOA_CATALOGUE_FOLDER", str(tmp_path / "prices"))
        status, output = await admin("models", "--refresh", "--json")
        assert (status, json.loads(output)[0]["capabilities"]) == (0, ["tools", "thinking"])
        (kept,) = (tmp_path / "prices").iterdir()
        assert kept.read_bytes() == published.read_bytes()
        published.write_text("<html></html>", encoding="utf-8")
        status, text = await admin("models", "--refresh")
        assert (status, "could not be refreshed" in text) == (1, True)
        assert json.loads(kept.read_bytes())

    async def test_that_do_not_answer_are_something_to_do(
        self, admin: Commands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with held_port() as port:
            monkeypatch.setenv("STOA_OLLAMA_URL", f"http://127.0.0.1:{port}")
            status, text = await admin("models")
        assert (status, "unavailable" in text) == (3, True)


class TestLimits:
    async def test_are_shown_set_and_cleared(
        self, admin: Commands, person: httpx.AsyncClient
    ) -> None:
        me = await id_of(person)
        made = await admin("plans", "set", "gold", "weight=4", "running=8")
        assert made == (0, "gold (0 people): weight=4 running=8\n")
        changed = await admin("plans", "set", "gold", "weight=2.5", "running=default", "--json")
        assert json.loads(changed[1])["limits"] == {"weight": 2.5}

        given = ("queued=none", "running=2", "--plan", "gold", "--json")
        status, output = await admin("limits", "set", me, *given)
        found = json.loads(output)
        assert (status, found["plan"]) == (0, "gold")
        assert found["limits"] == {"running": 2, "queued": None}
        _, output = await admin("limits", "set", me, "running=default", "--json")
        found = json.loads(output)
        assert (found["plan"], found["limits"]) == ("gold", {"queued": None})
        assert (found["effective"]["running"], found["effective"]["weight"]) == (4, 2.5)
        status, text = await admin("limits", "show", me)
        assert status == 0
        assert all(word in text for word in (me, "plan gold", "weight", "2.5", "no limit"))

        status, text = await admin("plans", "delete", "gold")
        assert (status, text.startswith("stoa: Somebody has this plan.")) == (1, True)
        _, output = await admin("limits", "set", me, "--plan", "none", "--json")
        assert json.loads(output)["plan"] is None
        status, output = await admin("limits", "clear", me, "--json")
        assert (status, json.loads(output)["limits"]) == (0, {})
        assert await admin("plans", "delete", "gold") == (0, "Done.\n")
        status, text = await admin("plans", "list")
        assert (status, "gold" in text, "tokens_per_day" in text) == (0, False, True)
        assert (await admin("plans", "delete", "gold"))[0] == 1

    async def test_of_nobody_are_a_failure_and_of_no_id_wrong_use(self, admin: Commands) -> None:
        for command in (("show",), ("clear",), ("set", "running=1")):
            name, *values = command
            failed = await admin("limits", name, str(uuid4()), *values)
            assert failed == (1, "stoa: There is no such user.\n")
            assert (await admin("limits", name, "somebody", *values))[0] == 2

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (("weight=0",), "from 0.01"),
            (("speed=1",), "There are: weight"),
            (("weight",), "name=value"),
            (("running=many",), "is a number"),
            (("weight=nan",), "is a number"),
            ((), "Name a limit"),
            (("--plan", "nobodys"), "no plan of that"),
        ],
        ids=str,
    )
    async def test_that_cannot_be_are_wrong_use(
        self, admin: Commands, person: httpx.AsyncClient, wrong: tuple[str, ...], said: str
    ) -> None:
        me = await id_of(person)
        status, output = await admin("limits", "set", me, *wrong)
        assert (status, said in output) == (2, True), output
        assert json.loads((await admin("limits", "show", me, "--json"))[1])["limits"] == {}

    async def test_of_a_plan_whose_name_cannot_be_are_wrong_use(self, admin: Commands) -> None:
        assert (await admin("plans", "set", "Gold"))[0] == 2


class TestUsage:
    async def test_is_shown_over_time_and_by_person(
        self, admin: Commands, person: httpx.AsyncClient, at_the_database: TestDatabase
    ) -> None:
        me = await id_of(person)
        superuser = await at_the_database.connect("owner")
        try:
            await superuser.execute(
                "INSERT INTO usage_hours (user_id, hour, model, calls, prompt_tokens)"
                " VALUES ($1, '2024-02-29 13:00Z', 'smollm2:latest', 3, 12345)",
                UUID(me),
            )
        finally:
            await superuser.close()
        days = ("--from", "2024-02-28", "--to", "2024-03-02", "--bucket", "day")
        status, output = await admin("usage", *days, "--json")
        found = json.loads(output)
        assert status == 0
        assert [each["prompt_tokens"] for each in found["buckets"]] == [0, 12345, 0]
        assert [each["user_id"] for each in found["users"]] == [me]
        status, text = await admin("usage", *days, "--user", me)
        assert status == 0
        assert all(word in text for word in (me, "12345", "2024-02-29"))
        assert "2024-02-28 00:00:00.000Z  " not in text.partition("By day")[2]

    async def test_of_no_range_is_wrong_use(self, admin: Commands) -> None:
        for wrong in (("--from", "2024-03-02", "--to", "2024-02-28"), ("--from", "2010-01-01")):
            assert (await admin("usage", *wrong))[0] == 2


class TestUsers:
    async def test_are_listed_shown_suspended_and_resumed(
        self, admin: Commands, person: httpx.AsyncClient
    ) -> None:
        me = await id_of(person)
        status, output = await admin("users", "list", "--json", "--sort", "last_seen_at")
        assert (status, me in output) == (0, True)
        status, text = await admin("users", "list", "--limit", "1000")
        assert (status, me in text, "people" in text) == (0, True, True)
        status, output = await admin("users", "suspend", me, "--json")
        assert (status, json.loads(output)["state"]) == (0, "suspended")
        assert (await person.post("/threads", json={})).status_code == 403
        assert me in (await admin("users", "list", "--state", "suspended"))[1]
        status, text = await admin("users", "resume", me)
        assert (status, "active" in text) == (0, True)
        assert (await person.post("/threads", json={})).status_code == 200
        status, shown = await admin("users", "show", me)
        assert status == 0
        assert all(word in shown for word in (me, "Kept", "threads", "Used", "In force"))
        assert "canary" not in (text + shown + output).lower()

    async def test_of_nobody_are_a_failure_and_of_no_id_wrong_use(self, admin: Commands) -> None:
        for command in ("show", "suspend", "resume"):
            failed = await admin("users", command, str(uuid4()))
            assert failed == (1, "stoa: There is no such user.\n")
            assert (await admin("users", command, "somebody"))[0] == 2


class TestWorkers:
    async def test_are_shown(self, admin: Commands) -> None:
        status, text = await admin("workers")
        assert (status, "at work" in text) == (0, True)
        (worker,) = json.loads((await admin("workers", "--json"))[1])
        assert worker["worker_id"] in text


class TestWhatIsDoneOnTheCommandLine:
    async def test_is_on_record_with_the_account_whose_process_it_was(
        self,
        admin: Commands,
        service: RunningService,
        person: httpx.AsyncClient,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        me, account = await id_of(person), pwd.getpwuid(os.getuid()).pw_name
        monkeypatch.setenv("USER", "somebody-else")
        async with record_of(service) as record:
            before = len(await record.acts(account=account))
            for command in (
                ("limits", "set", me, "seats=2"),
                ("limits", "show", me),
                ("limits", "show", me),
                ("users", "suspend", me),
                ("users", "resume", me),
                ("plans", "set", "silver"),
                ("plans", "delete", "silver"),
                ("pools", "--set-capacity", "default=default"),
                ("usage", "--user", me),
                ("reconcile",),
            ):
                assert (await admin(*command))[0] == 0, command
            done = (await record.acts(account=account))[before:]
        whom = UUID(me)
        # What was looked at within the hour before is not said again.
        assert [(act["action"], act["route"], act["user_id"], act["object"]) for act in done] == [
            ("limits_set", "stoa admin limits set", whom, None),
            ("looked", "stoa admin limits show", whom, None),
            ("suspended", "stoa admin users suspend", whom, None),
            ("resumed", "stoa admin users resume", whom, None),
            ("plan_set", "stoa admin plans set", None, "silver"),
            ("plan_deleted", "stoa admin plans delete", None, "silver"),
            ("pool_set", "stoa admin pools", None, "default"),
            ("looked", "stoa admin usage", whom, None),
            ("reconciled", "stoa admin reconcile", None, None),
        ]
        told = (await person.get("/me/audit")).json()
        assert [each["action"] for each in told] == [
            *("looked", "resumed", "suspended", "looked", "limits_set"),
        ]
        assert account not in str([{**each, "route": None} for each in told])

    async def test_is_shown_by_whom_it_is_about_and_who_did_it(
        self, admin: Commands, person: httpx.AsyncClient
    ) -> None:
        me, account = await id_of(person), pwd.getpwuid(os.getuid()).pw_name
        await admin("users", "suspend", me)
        await admin("users", "resume", me)
        about = ("--user", me, "--action", "suspended")
        (entry,) = json.loads((await admin("audit", *about, "--json"))[1])
        assert (entry["account"], entry["user_id"]) == (account, me)
        status, text = await admin("audit", "--by", account, "--limit", "1000")
        assert (status, me in text, "stoa admin users resume" in text) == (0, True, True)
        assert (await admin("audit", "--user", str(uuid4()), "--json"))[1] == "[]\n"
        assert (await admin("audit", "--from", "2024-03-02", "--to", "2024-03-01"))[0] == 2


class TestHelp:
    @pytest.mark.parametrize(
        "command",
        [
            *("queue", "pools", "usage", "limits show", "limits set", "limits clear", "plans set"),
            *("users list", "users show", "users suspend", "users resume", "audit", "workers"),
        ],
    )
    async def test_is_there_for_every_command(self, admin: Commands, command: str) -> None:
        status, text = await admin(*command.split(), "--help")
        assert (status, "Usage: stoa admin" in text) == (0, True)
        assert CANARY not in text
