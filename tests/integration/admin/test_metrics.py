"""Prometheus reads how queues, seats and pools are doing; by model and pool, never by person."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.settings import Settings, SettingsError
from tests.integration.admin.conftest import LOOK_SECONDS, id_of, start
from tests.integration.admin.test_at_work import ended
from tests.support.held_ports import held_port
from tests.support.model_server import Script
from tests.support.service import RunningService, running_worker
from tests.support.tenancy import PATIENCE

MODEL = "smollm2:latest"
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def text_of(settings: Settings) -> str:
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        response = await client.get(f"http://127.0.0.1:{settings.metrics_port}/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return response.text


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def once(settings: Settings, so: Callable[[Samples], bool]) -> Samples:
    """What is said once it is so: facts are kept for up to a second, and calls end after runs."""
    while not so(found := samples(await text_of(settings))):  # noqa: ASYNC110
        await asyncio.sleep(LOOK_SECONDS)
    return found


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def label_values(found: Samples) -> Iterator[tuple[str, str]]:
    for _, labels in found:
        yield from labels


class TestAWorkersMetrics:
    async def test_say_how_runs_models_and_pools_are_doing(
        self, service: RunningService, operator: httpx.AsyncClient, person: httpx.AsyncClient
    ) -> None:
        stalls = sum(each.stalled_at is not None for each in service.model.requests)
        service.model.enqueue(Script(text="one two", stall_at=1))
        run = await start(person)
        call = await service.model.wait_for_stall(stalls + 1)
        thread = run.json()["thread_id"]
        second = await start(person, thread)
        later = await start(person, thread, after_seconds=3600)
        found = await once(
            service.settings, lambda said: value(said, "stoa_runs", state="queued") > 0
        )
        assert value(found, "stoa_database_up") == 1
        assert value(found, "stoa_runs", state="running") == 1
        assert value(found, "stoa_runs", state="scheduled") == 1
        assert value(found, "stoa_users_waiting") == 1
        assert value(found, "stoa_oldest_wait_seconds", waits_for="start") > 0
        assert value(found, "stoa_oldest_wait_seconds", waits_for="model") == 0
        assert value(found, "stoa_model_seats_in_use", model=MODEL) == 1
        assert value(found, "stoa_model_calls_waiting", model=MODEL) == 0
        assert value(found, "stoa_model_vtime_spread_tokens", model=MODEL) == 0
        pool = {"pool": "default", "model": MODEL}
        assert value(found, "stoa_pool_seats", **pool) == service.settings.ollama_capacity
        assert value(found, "stoa_pool_seats_in_use", **pool) == 1
        assert value(found, "stoa_pool_seats_cooling", **pool) == 0
        assert value(found, "stoa_pool_state", **pool, state="open") == 1
        for part in ("database", "workers", "model:default"):
            assert value(found, "stoa_component_available", component=part) == 1
        assert value(found, "stoa_pool_state", **pool, state="failing") == 0
        service.model.release(call)
        assert await ended(person, run) == await ended(person, second) == "success"
        path = f"/threads/{thread}/runs/{later.json()['run_id']}/cancel"
        assert (await person.post(path)).status_code == 200

    async def test_count_calls_tokens_and_waits(
        self, service: RunningService, person: httpx.AsyncClient
    ) -> None:
        before = samples(await text_of(service.settings))

        def more_in(said: Samples, name: str, **labels: str) -> float:
            key = (name, frozenset(labels.items()))
            return said.get(key, 0) - before.get(key, 0)

        assert await ended(person, await start(person)) == "success"
        # Of what a call comes to, these are counted last.
        last = partial(more_in, name="stoa_model_tokens_total", model=MODEL, kind="output")
        after = await once(service.settings, lambda said: last(said) > 0)
        more = partial(more_in, after)
        calls = {"model": MODEL, "pool": "default", "outcome": "ended"}
        assert more("stoa_model_calls_total", **calls) == 1
        assert more("stoa_model_tokens_total", model=MODEL, kind="prompt") > 0
        assert more("stoa_model_tokens_total", model=MODEL, kind="output") > 0
        assert more("stoa_seat_wait_seconds_count", model=MODEL) == 1
        took = {"model": MODEL, "outcome": "ended"}
        assert more("stoa_model_call_duration_seconds_count", **took) == 1
        assert more("stoa_run_attempts_total", outcome="success", code="") == 1
        assert after["process_resident_memory_bytes", frozenset()] > 0

    async def test_name_models_pools_and_states_and_nobody(
        self, service: RunningService, person: httpx.AsyncClient
    ) -> None:
        assert await ended(person, await start(person)) == "success"
        text = await text_of(service.settings)
        assert "canary" not in text.lower()
        assert await id_of(person) not in text
        found = samples(text)
        assert {name for name, _ in label_values(found)} <= {
            *("model", "pool", "state", "waits_for", "outcome", "kind", "code", "le", "component")
        }
        assert {each for name, each in label_values(found) if name == "model"} == {MODEL}
        assert {each for name, each in label_values(found) if name == "pool"} == {"default"}

    async def test_end_with_the_worker(self, service: RunningService) -> None:
        with held_port() as port:
            settings = service.settings.model_copy(update={"metrics_port": port})
            async with running_worker(settings):
                assert "stoa_database_up 1.0" in await text_of(settings)
            with pytest.raises(httpx.ConnectError):
                await text_of(settings)

    async def test_end_the_start_where_their_port_is_taken(self, service: RunningService) -> None:
        port = service.settings.metrics_port
        with pytest.raises(SettingsError, match=f"STOA_METRICS_PORT: cannot listen on .*:{port}"):
            async with running_worker(service.settings):
                pass
