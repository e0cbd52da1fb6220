"""What people are told of a model: what its servers say, joined with what is published of it."""

from __future__ import annotations

from typing import Any

import pytest

from app.models.catalogue.offered import (
    OfferedModel,
    Price,
    offered,
    prompt_tokens,
    reads_images,
)
from app.models.catalogue.prices import PublishedModel
from app.models.catalogue.served import Look, ReportedPrice, ServedModel
from app.settings import Settings
from app.sharing import ChatModel, chat_models
from tenancy.scheduler.components import Status

SERVED = ServedModel("ab" * 32, 5, 32_768, frozenset({"tools", "thinking"}))
PUBLISHED = PublishedModel("Small", 0.1, 0.4, 128_000, 512, frozenset({"vision"}))
KEY = ("far", "small")


def model(pools: int = 1, **said: Any) -> ChatModel:
    tables = [
        {"name": f"p{n}", "url": f"http://{n}.test", "model": "small", **said} for n in range(pools)
    ]
    settings = {"pool": tables, "model": "small", "model_context": 4096, "model_output": 1024}
    return chat_models(Settings.model_validate(settings))[0]


def told(
    of: ChatModel,
    *served: ServedModel,
    looks: dict[str, Look] | None = None,
    parts: dict[str, Status] | None = None,
    prices: dict[tuple[str, str], PublishedModel] | None = None,
) -> OfferedModel:
    known = {f"p{n}": each for n, each in enumerate(served)}
    found = offered(
        of, dict(known) if looks is None else looks, known, parts or {}, prices or {}, 2.345
    )
    assert found is not None
    return found


class TestAModel:
    def test_is_what_its_server_says(self) -> None:
        assert told(model(), SERVED) == OfferedModel(
            model="small:latest",
            is_default=True,
            status="available",
            context_length=4096,
            max_output=1024,
            model_context_length=32_768,
            capabilities=("tools", "thinking"),
            digest="ab" * 32,
            size_bytes=5,
            price=Price("unpriced"),
            seat_seconds_per_call=2.3,
        )

    def test_has_no_longer_window_than_it_was_made_for(self) -> None:
        short = told(model(), ServedModel(context=2048))
        assert (short.context_length, short.model_context_length) == (2048, 2048)

    @pytest.mark.parametrize(
        ("made_for", "left"),
        [
            ([], 3072),
            ([None], 3072),
            ([32_768], 3072),
            ([4096], 3072),
            ([32_768, 3000], 1976),
            ([None, 1000], 500),
        ],
    )
    def test_leaves_for_the_prompt_what_fits_on_each_of_its_servers(
        self, made_for: list[int | None], left: int
    ) -> None:
        known = {f"p{n}": ServedModel(context=each) for n, each in enumerate(made_for)}
        assert prompt_tokens(model(2), known) == left

    def test_can_what_each_of_its_servers_can(self) -> None:
        other = ServedModel("cd" * 32, 5, 8192, frozenset({"vision", "tools"}))
        both = told(model(2), SERVED, other)
        assert both.capabilities == ("tools",)
        assert (both.digest, both.size_bytes) == (None, 5)  # another model of the same name
        assert both.model_context_length == 8192

    @pytest.mark.parametrize(("images", "can"), [(True, ("tools", "vision")), (False, ("tools",))])
    def test_reads_images_where_the_settings_say_so(
        self, images: bool, can: tuple[str, ...]
    ) -> None:
        chosen = model(images=images)
        served = ServedModel(capabilities=frozenset({"tools"} | (set() if images else {"vision"})))
        assert told(chosen, served).capabilities == can
        assert reads_images(chosen, {"p0": served}) is images

    def test_is_none_where_it_only_measures_texts(self) -> None:
        assert offered(model(), {}, {"p0": ServedModel(answers=False)}, {}, {}, None) is None

    def test_is_told_of_before_anybody_has_looked(self) -> None:
        found = told(model(), looks={})
        assert (found.status, found.context_length, found.capabilities) == ("unknown", 4096, ())


class TestWhatItCosts:
    def test_is_time_where_nobody_says_a_price(self) -> None:
        unpriced = told(model(provider="far"), SERVED, prices={("near", "small"): PUBLISHED})
        assert (unpriced.price.source, unpriced.cost) == ("unpriced", "seat_seconds")

    def test_is_nothing_of_the_catalogues_unless_a_pool_names_its_provider(self) -> None:
        assert told(model(), SERVED, prices={KEY: PUBLISHED}).cost == "seat_seconds"

    def test_is_what_is_published_of_its_providers(self) -> None:
        priced = told(model(provider="far"), SERVED, prices={KEY: PUBLISHED})
        assert priced.price == Price("catalogue", 0.1, 0.4, "USD")
        assert (priced.cost, priced.max_output) == ("tokens", 512)

    def test_is_before_all_what_its_server_reports(self) -> None:
        served = ServedModel(price=ReportedPrice(3.0, None, "EUR"))
        priced = told(model(provider="far"), served, prices={KEY: PUBLISHED})
        assert priced.price == Price("reported", 3.0, None, "EUR")

    def test_is_unsaid_where_the_catalogue_has_no_price(self) -> None:
        bare = PublishedModel("Small", None, None, 64_000, None, frozenset({"tools"}))
        found = told(model(provider="far"), looks={}, prices={KEY: bare})
        assert found.price.source == "unpriced"
        assert (found.model_context_length, found.capabilities) == (64_000, ("tools",))


class TestHowItStands:
    @pytest.mark.parametrize(
        ("parts", "looks", "status"),
        [
            ({"p0": "available", "p1": "available"}, {}, "available"),
            ({"p0": "available", "p1": "degraded"}, {}, "degraded"),
            ({"p0": "unavailable", "p1": "unavailable"}, {}, "unavailable"),
            ({"p0": "available"}, {}, "available"),
            ({}, {"p0": SERVED, "p1": SERVED}, "available"),
            ({}, {"p0": SERVED, "p1": "unreachable"}, "degraded"),
            ({}, {"p0": "model_missing", "p1": "unreachable"}, "unavailable"),
            ({"p0": "unavailable", "p1": "unavailable"}, {"p0": SERVED}, "unavailable"),
            ({"p0": "available", "p1": "available"}, {"p0": "unreachable"}, "available"),
            ({}, {}, "unknown"),
        ],
        ids=[
            "all",
            "one fails",
            "none",
            "one unknown",
            "looked",
            "one is dead",
            "all are dead",
            "callers know better that it fails",
            "callers know better that it works",
            "nobody knows",
        ],
    )
    def test_is_said_of_all_its_pools(
        self, parts: dict[str, Status], looks: dict[str, Look], status: str
    ) -> None:
        standing = {f"model:{pool}": said for pool, said in parts.items()}
        assert told(model(2), looks=looks, parts=standing).status == status
