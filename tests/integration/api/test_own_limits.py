"""What people see of their limits: what they use, what waits and why, and nothing of others."""

from __future__ import annotations

import asyncio

import httpx

from tenancy.scheduler.limits import RULES
from tests.support.frames import new_thread, read_run, start_run
from tests.support.limits import limit, limits_of, named, settled_usage
from tests.support.model_server import Script
from tests.support.service import RunningService

PATIENCE = 30


async def whys(client: httpx.AsyncClient) -> list[str]:
    return [each["why"] for each in (await limits_of(client))["waiting"]]


async def until_it_waits_for_the_model(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while await waits_for(client) != ["model"]:  # noqa: ASYNC110 - who waits is not woken
            await asyncio.sleep(0.05)


async def waits_for(client: httpx.AsyncClient) -> list[str]:
    return [each["waits_for"] for each in (await limits_of(client))["waiting"]]


class TestLimits:
    async def test_are_all_there_for_somebody_who_has_done_nothing(
        self, service: RunningService
    ) -> None:
        found = await limits_of(service.client("newcomer"))
        assert [each["name"] for each in found["limits"]] == [n for n in RULES if n != "weight"]
        assert (found["plan"], found["weight"]) == (None, 1)
        assert found["runs"] == {"running": 0, "queued": 0, "scheduled": 0}
        assert found["waiting"] == []
        unused = {each["name"]: each["used"] for each in found["limits"]}
        assert unused.pop("requests_per_minute") in (0, 1)  # it drains while one looks
        assert unused.pop("steps_per_run") is None
        assert set(unused.values()) == {0}
        (model,) = found["models"]
        assert (model["model"], model["mine"], model["share"]) == ("smollm2:latest", 0, 0)
        assert model["state"] == "open"

    async def test_say_what_is_used_and_when_it_begins_anew(self, narrow: RunningService) -> None:
        http = narrow.client("user")
        await limit(narrow, http, tokens_per_day=1000, threads=5, requests_per_minute=600)
        thread = await new_thread(http)
        await read_run(http, await start_run(http, thread, "Hello"))
        graph = {"assistant": "remembering", "graph_input": {"key": "a", "text": "b"}}
        await read_run(http, await start_run(http, thread, **graph))  # type: ignore[arg-type]
        used = (await settled_usage(http, calls=1))["total"]
        found = await limits_of(http)
        tokens = named(found, "tokens_per_day")
        assert tokens["used"] == used["prompt_tokens"] + used["output_tokens"] > 0
        assert tokens["remaining"] == 1000 - tokens["used"]
        assert (tokens["window_seconds"], tokens["resets_at"][10:]) == (
            86_400,
            "T00:00:00.000000Z",
        )
        monthly = named(found, "tokens_per_month")
        assert (monthly["limit"], monthly["remaining"]) == (None, None)
        assert monthly["used"] == tokens["used"]
        assert monthly["resets_at"][8:] == "01T00:00:00.000000Z"
        threads = named(found, "threads")
        assert (threads["limit"], threads["used"], threads["remaining"]) == (5, 1, 4)
        memory = named(found, "memory_bytes")
        assert 0 < memory["used"] < 200
        assert memory["limit"] == narrow.settings.memory_bytes_per_user

    async def test_of_requests_are_those_of_the_header(self, service: RunningService) -> None:
        http = service.client("counter")
        await limit(service, http, requests_per_minute=2)  # what is used stays so for half a minute
        answer = await http.get("/me/limits")
        requests = named(answer.json(), "requests_per_minute")
        assert requests["used"] + requests["remaining"] == 2
        assert f'"requests_per_minute";r={requests["remaining"]};' in answer.headers["ratelimit"]
        assert requests["window_seconds"] == 60
        assert requests["resets_at"] is not None

    async def test_count_streams(self, idle: RunningService) -> None:
        http = idle.client("viewer")
        thread = await new_thread(http)
        async with http.stream("GET", f"/threads/{thread}/stream"):
            assert named(await limits_of(http), "streams")["used"] == 1

    async def test_are_seen_by_somebody_who_is_suspended(self, idle: RunningService) -> None:
        http = idle.client("suspended")
        thread = await new_thread(http)
        await start_run(http, thread)
        await limit(idle, http, running=0)
        found = await limits_of(http)
        assert named(found, "running")["limit"] == 0
        assert [each["why"] for each in found["waiting"]] == ["suspended"]


class TestARunThatWaits:
    async def test_has_a_place_among_everybody(self, idle: RunningService) -> None:
        ann, ben = idle.client("ann"), idle.client("ben")
        hers = [await start_run(ann, await new_thread(ann)) for _ in range(3)]
        his = await start_run(ben, await new_thread(ben))
        waiting = {each["run_id"]: each for each in (await limits_of(ann))["waiting"]}
        places = [waiting[run.rpartition("/")[2]]["place"] for run in hers]
        (ben_waits,) = (await limits_of(ben))["waiting"]
        assert ben_waits["run_id"] == his.rpartition("/")[2]
        # Others of this service's people may wait too; each is counted once a round.
        assert places == sorted(places)
        assert len({*places, ben_waits["place"]}) == 4
        assert places[0] < ben_waits["place"] < places[1]
        assert {each["waits_for"] for each in waiting.values()} == {"start"}
        assert {each["why"] for each in waiting.values()} == {"queue"}
        assert {each["expected_wait_seconds"] for each in waiting.values()} == {None}

    async def test_behind_another_of_its_thread_says_so(self, idle: RunningService) -> None:
        http = idle.client("impatient")
        thread = await new_thread(http)
        for _ in range(2):
            await start_run(http, thread)
        first, second = (await limits_of(http))["waiting"]
        assert (first["why"], second["why"]) == ("queue", "thread")
        assert second["place"] is None

    async def test_for_later_says_when_it_is_due(self, idle: RunningService) -> None:
        http = idle.client("planner")
        run = await start_run(http, await new_thread(http), after_seconds=3600)
        due = (await http.get(run)).json()["due_at"]
        found = await limits_of(http)
        (waiting,) = found["waiting"]
        assert (waiting["why"], waiting["place"]) == ("scheduled", None)
        assert waiting["due_at"][:26] == due[:26]
        assert found["runs"] == {"running": 0, "queued": 0, "scheduled": 1}
        assert named(found, "queued")["used"] == 1

    async def test_for_ones_own_other_runs_says_so(self, idle: RunningService) -> None:
        http = idle.client("busy")
        await limit(idle, http, running=1)
        for _ in range(2):
            await start_run(http, await new_thread(http))
        assert await whys(http) == ["queue", "own_limit"]

    async def test_is_one_of_the_first_hundred(self, idle: RunningService) -> None:
        http = idle.client("heap")
        thread = await new_thread(http)
        for _ in range(101):
            await start_run(http, thread)
        found = await limits_of(http)
        assert (len(found["waiting"]), found["runs"]["queued"]) == (100, 101)

    async def test_for_the_model_has_a_place_in_the_models_queue(
        self, narrow: RunningService
    ) -> None:
        first, second, third = (narrow.client(name) for name in ("ina", "jon", "kim"))
        stalls = sum(each.stalled_at is not None for each in narrow.model.requests)
        narrow.model.enqueue(Script(text="one two", stall_at=1))
        runs = [(first, await start_run(first, await new_thread(first)))]
        await narrow.model.wait_for_stall(stalls + 1)
        for client in (second, third):
            runs.append((client, await start_run(client, await new_thread(client))))
            await until_it_waits_for_the_model(client)
        (model,) = (await limits_of(first))["models"]
        assert (model["in_use"], model["mine"], model["share"]) == (1, 1, 1)
        waiting = [(await limits_of(client))["waiting"][0] for client in (second, third)]
        assert sorted(each["place"] for each in waiting) == [1, 2]
        assert {each["why"] for each in waiting} == {"queue"}
        assert (await limits_of(second))["models"][0]["share"] == 0
        await first.post(f"{runs[0][1]}/cancel", params={"wait": 1})
        for client, run in runs[1:]:
            assert (await read_run(client, run))[-1].data["status"] == "success"

    async def test_is_shown_to_nobody_else(self, idle: RunningService) -> None:
        nell, owen = idle.client("nell"), idle.client("owen")
        thread = await new_thread(nell)
        run = await start_run(nell, thread)
        before = await limits_of(owen)
        assert before["waiting"] == []
        await start_run(nell, await new_thread(nell))
        after = await owen.get("/me/limits")
        hers = (await nell.get("/me")).json()["user_id"]
        for secret in (thread, run.rpartition("/")[2], hers):
            assert secret not in after.text
        for each in ("runs", "waiting", "models"):
            assert after.json()[each] == before[each]


class TestUsage:
    async def test_is_what_was_charged_for(self, narrow: RunningService) -> None:
        http = narrow.client("spender")
        thread = await new_thread(http)
        for _ in range(2):
            await read_run(http, await start_run(http, thread, "Hello"))
        found = await settled_usage(http, calls=2)
        assert (found["total"]["runs"], found["total"]["calls"]) == (2, 2)
        assert found["total"]["prompt_tokens"] > 0
        assert found["total"]["output_tokens"] > 0
        assert found["total"]["seat_seconds"] > 0
        assert len(found["buckets"]) == 24
        assert sum(each["runs"] for each in found["buckets"]) == 2
        assert sum(each["calls"] for each in found["buckets"]) == 2
        other = (await narrow.client("saver").get("/me/usage")).json()
        assert set(other["total"].values()) == {0}

    async def test_has_each_whole_hour_and_day_of_a_time(self, service: RunningService) -> None:
        http = service.client("historian")
        params = {"from": "2026-03-28T22:30:00+01:00", "to": "2026-03-30T00:00:00Z"}
        hours = (await http.get("/me/usage", params=params)).json()
        assert hours["from"] == hours["buckets"][0]["start"] == "2026-03-28T21:00:00+00:00"
        assert hours["to"] == "2026-03-30T00:00:00+00:00"
        assert len(hours["buckets"]) == 27
        days = (await http.get("/me/usage", params={**params, "bucket": "day"})).json()
        starts = [each["start"] for each in days["buckets"]]
        assert starts == ["2026-03-28T00:00:00+00:00", "2026-03-29T00:00:00+00:00"]
        thousand = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-11T16:00:00Z"}
        assert len((await http.get("/me/usage", params=thousand)).json()["buckets"]) == 1000

    async def test_of_no_time_or_too_much_is_refused(self, service: RunningService) -> None:
        http = service.client("dreamer")
        for params in (
            {"from": "2026-03-02T00:00:00Z", "to": "2026-03-01T00:00:00Z"},
            {"from": "2026-03-01T00:00:00Z", "to": "2026-03-01T00:00:00Z"},
            {"from": "2026-01-01T00:00:00Z", "to": "2026-02-11T16:00:01Z"},
            {"from": "2199-01-01T00:00:00Z"},
            {"from": "2026-03-01T00:00:00"},
            {"from": "0001-01-01T00:00:00Z", "to": "9999-12-31T23:59:59Z"},
            {"to": "9999-12-31T23:59:59Z"},
            {"bucket": "week"},
            {"since": "2026-03-01T00:00:00Z"},
        ):
            answer = await http.get("/me/usage", params=params)
            assert answer.status_code == 422, (params, answer.text)
