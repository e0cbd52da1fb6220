"""The probe of a model server."""

from __future__ import annotations

import gzip
import socket

import pytest

from app.models.catalogue.served import MOST_BYTES
from app.models.health import PoolHealth, probe
from tests.support.model_server import ScriptedModelServer
from tests.support.raw_server import Exchange, json_of, raw_server

PATIENCE = 30.0
HUGE = json_of({"models": [{"name": "smollm2:latest"}]}) + b" " * MOST_BYTES


class TestProbing:
    @pytest.mark.parametrize("name", ["smollm2", "smollm2:latest"])
    async def test_a_server_with_the_model_is_ready(
        self, server: ScriptedModelServer, name: str
    ) -> None:
        assert (await probe(f"{server.url}/", name, seconds=PATIENCE)).ready

    async def test_a_server_without_it_says_so(self, server: ScriptedModelServer) -> None:
        found = await probe(server.url, "other", seconds=PATIENCE)
        assert found == PoolHealth(reachable=True, model_present=False)

    async def test_probing_is_no_model_call(self, server: ScriptedModelServer) -> None:
        await probe(server.url, "smollm2", seconds=PATIENCE)
        assert server.requests == []

    async def test_no_server_is_not_reachable(self) -> None:
        assert not (await probe("http://127.0.0.1:1", "smollm2")).reachable

    async def test_a_server_that_says_nothing_is_not_waited_for(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            assert not (await probe(f"http://127.0.0.1:{port}", "smollm2", seconds=0.05)).reachable

    @pytest.mark.parametrize(
        ("body", "headers"),
        [
            (HUGE, ()),
            (gzip.compress(HUGE), ("Content-Encoding: gzip",)),
            (b"[" * 100_000, ()),
            (b'{"models": {"name": 1}}', ()),
        ],
        ids=["huge", "packed", "deep", "junk"],
    )
    async def test_a_server_is_believed_no_more_than_it_can_be_read(
        self, body: bytes, headers: tuple[str, ...]
    ) -> None:
        async def answer(exchange: Exchange) -> None:
            await exchange.answer(body, *headers)

        async with raw_server(answer) as server:
            found = await probe(server.url, "smollm2", seconds=PATIENCE)
        assert found == PoolHealth(reachable=False, model_present=False)
