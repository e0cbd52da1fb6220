"""A look at a model server, which may answer anything: what makes sense of it is taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from app.models.catalogue.looking import ServedModels
from app.models.catalogue.served import (
    MOST_BYTES,
    Look,
    ReportedPrice,
    ServedModel,
    look_at_server,
)
from app.settings import Settings
from app.sharing import chat_models
from tests.support.held_ports import held_port
from tests.support.model_server import ScriptedModelServer
from tests.support.raw_server import Exchange, RawServer, raw_server

MODEL = "small:latest"
DIGEST = "ab" * 32
TAG = {"name": MODEL, "digest": DIGEST, "size": 123}
SHOWN = {
    "model_info": {"general.architecture": "llama", "llama.context_length": 8192},
    "capabilities": ["completion", "tools", "vision", "insert"],
}


class Ollama:
    """A model server of few words, each of which a test may replace."""

    def __init__(self) -> None:
        self.tags: Any = {"models": [TAG]}
        self.shown: Any = SHOWN
        self.holding: set[str] = set()
        """Paths that are not answered."""

    async def answer(self, exchange: Exchange) -> None:
        if exchange.path in self.holding:
            await asyncio.Event().wait()
        said = self.tags if exchange.path == "/api/tags" else self.shown
        await exchange.answer(said if isinstance(said, bytes) else json.dumps(said).encode())


@pytest.fixture
def ollama() -> Ollama:
    return Ollama()


@pytest.fixture
async def server(ollama: Ollama) -> AsyncIterator[RawServer]:
    async with raw_server(ollama.answer) as running:
        yield running


async def look(server: RawServer, **options: Any) -> Any:
    return (await look_at_server(server.url, [MODEL], **options))[MODEL]


class TestALook:
    async def test_says_what_the_model_is_and_can(self, server: RawServer) -> None:
        assert await look(server) == ServedModel(
            DIGEST, 123, 8192, frozenset({"tools", "vision"}), answers=True, price=None
        )

    async def test_reads_what_ollama_says(self) -> None:
        async with ScriptedModelServer() as real:
            found = (await look_at_server(real.url, ["smollm2:latest"]))["smollm2:latest"]
            assert real.requests == []  # it is no call of a model's
        assert isinstance(found, ServedModel)
        assert (found.context, found.size_bytes) == (131_072, 1)
        assert found.capabilities == frozenset({"tools", "thinking"})

    async def test_hears_what_the_model_costs(self, server: RawServer, ollama: Ollama) -> None:
        ollama.shown = {**SHOWN, "pricing": {"input_per_million": 0.5, "currency": "EUR"}}
        assert (await look(server)).price == ReportedPrice(0.5, None, "EUR")

    async def test_tells_a_model_that_only_measures_texts(
        self, server: RawServer, ollama: Ollama
    ) -> None:
        ollama.shown = {"capabilities": ["embedding"]}
        assert not (await look(server)).answers

    async def test_finds_a_model_missing(self, server: RawServer) -> None:
        found = await look_at_server(server.url, ["other:latest", MODEL])
        assert found["other:latest"] == "model_missing"
        assert isinstance(found[MODEL], ServedModel)

    @pytest.mark.parametrize(
        "tags",
        [
            b"",
            b"<html></html>",
            b"[" * 100_000,
            b"\xff",
            b"[]",
            b"null",
            b"{}",
            b'{"models": {}}',
            b'{"models": []' + b" " * MOST_BYTES + b"}",
        ],
        ids=["empty", "page", "deep", "no text", "list", "null", "none", "object", "too much"],
    )
    async def test_finds_no_server_in_nonsense(
        self, server: RawServer, ollama: Ollama, tags: bytes
    ) -> None:
        ollama.tags = tags
        assert await look(server) == "unreachable"

    @pytest.mark.parametrize(
        "tag",
        [
            {"name": MODEL, "digest": ["a"], "size": -5},
            {"name": MODEL, "digest": "<script>", "size": "large"},
            {"name": MODEL, "digest": "a" * 5000, "size": 10**30},
            {"name": MODEL, "size": 1.5},
        ],
        ids=["kinds", "words", "lengths", "a fraction"],
    )
    async def test_leaves_out_what_makes_no_sense_of_a_model(
        self, server: RawServer, ollama: Ollama, tag: dict[str, Any]
    ) -> None:
        ollama.tags = {"models": [None, 5, {}, {"name": 7}, tag]}
        found = await look(server)
        assert (found.digest, found.size_bytes) == (None, None)
        assert found.context == 8192

    @pytest.mark.parametrize(
        "shown",
        [
            b"",
            b"no",
            [],
            {"model_info": [], "capabilities": "tools"},
            {"model_info": {"general.architecture": ["llama"]}, "capabilities": [{}]},
            {"model_info": {"general.architecture": "a", "a.context_length": -1}},
            {"model_info": {"general.architecture": "a", "a.context_length": True}},
            {"model_info": {"general.architecture": "a", "a.context_length": 10**15}},
            {"capabilities": ["tools"] * 1000, "pricing": {"input_per_million": -1}},
            {"pricing": {"input_per_million": 1, "currency": "$$$"}},
            b"{" + b" " * MOST_BYTES + b"}",
        ],
        ids=[
            "empty",
            "no JSON",
            "a list",
            "wrong kinds",
            "wrong within",
            "negative",
            "a truth",
            "endless",
            "too many",
            "no currency",
            "too much",
        ],
    )
    async def test_makes_do_with_a_list_where_the_rest_is_nonsense(
        self, server: RawServer, ollama: Ollama, shown: Any
    ) -> None:
        ollama.shown = shown
        assert await look(server) == ServedModel(DIGEST, 123)

    async def test_does_not_wait_for_a_server_that_says_nothing(
        self, server: RawServer, ollama: Ollama
    ) -> None:
        ollama.holding = {"/api/tags"}
        assert await look(server, seconds=0.05) == "unreachable"

    async def test_does_not_wait_for_a_server_that_says_no_more_than_names(
        self, server: RawServer, ollama: Ollama
    ) -> None:
        ollama.holding = {"/api/show"}
        seconds, found = 0.1, cast("Look", "unreachable")
        while found == "unreachable":  # where even the names took so long
            seconds *= 2
            found = await look(server, seconds=seconds)
        assert found == ServedModel(DIGEST, 123)

    async def test_follows_no_server_elsewhere(self, server: RawServer) -> None:
        async def away(exchange: Exchange) -> None:
            await exchange.answer(b"", "Location: /api/tags", status="307 Temporary Redirect")

        server.answerer = away
        assert await look(server) == "unreachable"
        assert server.asked.total() == 1


def models_of(*urls: str) -> ServedModels:
    """The same model on several servers."""
    pools = [{"name": f"p{n}", "url": url, "model": MODEL} for n, url in enumerate(urls)]
    return ServedModels(chat_models(Settings.model_validate({"pool": pools, "model": MODEL})))


class TestAllServers:
    async def test_are_asked_at_once_and_one_that_is_dead_is_none_of_the_others_business(
        self, server: RawServer
    ) -> None:
        with held_port() as port:
            served = models_of(server.url, f"http://127.0.0.1:{port}")
            assert served.looks == {}
            await served.first_look()
            assert served.looks["p1"] == "unreachable"
            assert list(served.known) == ["p0"]
            await served.aclose()

    async def test_are_known_though_they_go_away(self, server: RawServer, ollama: Ollama) -> None:
        served = models_of(server.url)
        await served.first_look()
        known = dict(served.known)
        ollama.tags = b"no"
        await served.refresh()
        assert served.looks == {"p0": "unreachable"}
        assert served.known == known
        ollama.tags = {"models": []}
        await served.refresh()
        assert served.looks == {"p0": "model_missing"}
        assert served.known == {}
        await served.aclose()

    async def test_are_looked_at_once_for_all_who_ask(self, server: RawServer) -> None:
        served = models_of(server.url)
        firsts = [served.first_look() for _ in range(4)]
        await asyncio.gather(*firsts, *(served.refresh() for _ in range(4)))
        assert server.asked == {"/api/tags": 1, "/api/show": 1}
        await served.aclose()

    async def test_say_whether_pictures_are_read(self, server: RawServer, ollama: Ollama) -> None:
        for said, images, reads in (
            (["completion", "vision"], None, True),
            (["completion"], None, False),
            (["completion"], True, True),
            (["completion", "vision"], False, False),
        ):
            ollama.shown = {"capabilities": said}
            pool = {"name": "p", "url": server.url, "model": MODEL, "images": images}
            settings = Settings.model_validate({"pool": [pool], "model": MODEL})
            served = ServedModels(chat_models(settings))
            assert await served.reads_images(chat_models(settings)[0]) is reads
            await served.aclose()
