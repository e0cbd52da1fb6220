"""What is taken of a published catalogue, and what is none."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from app.models.catalogue.prices import (
    MOST_BYTES,
    MOST_MODELS,
    CatalogueInvalid,
    PublishedModel,
    parse_prices,
)

MODEL: dict[str, Any] = {
    "id": "small",
    "name": "Small",
    "cost": {"input": 0.1, "output": 0.4, "cache_read": 0.01},
    "limit": {"context": 128_000, "output": 8_192},
    "modalities": {"input": ["text", "image"], "output": ["text"]},
    "tool_call": True,
    "reasoning": False,
    "release_date": "2026-01-01",
}


def catalogue(models: object = None, **providers: object) -> bytes:
    return orjson.dumps({"one": {"id": "one", "models": models or {"small": MODEL}}, **providers})


class TestACatalogue:
    def test_is_read_by_provider_and_model(self) -> None:
        assert parse_prices(catalogue()) == {
            ("one", "small"): PublishedModel(
                "Small", 0.1, 0.4, 128_000, 8_192, frozenset({"tools", "vision"})
            )
        }

    def test_may_leave_things_unsaid(self) -> None:
        assert parse_prices(catalogue({"bare": {}})) == {
            ("one", "bare"): PublishedModel("", None, None, None, None, frozenset())
        }

    @pytest.mark.parametrize(
        "wrong",
        [
            {"cost": {"input": -1}},
            {"cost": {"input": "much"}},
            {"limit": {"context": "endless"}},
            {"limit": []},
            "a text",
        ],
        ids=["negative", "no number", "no limit", "a list", "a text"],
    )
    def test_loses_only_the_model_that_makes_no_sense(self, wrong: Any) -> None:
        odd = {**MODEL, **wrong} if isinstance(wrong, dict) else wrong
        assert list(parse_prices(catalogue({"odd": odd, "small": MODEL}))) == [("one", "small")]

    def test_loses_only_the_provider_that_makes_no_sense(self) -> None:
        raw = catalogue(two={"models": ["small"]}, three=None)
        assert list(parse_prices(raw)) == [("one", "small")]

    @pytest.mark.parametrize(
        "raw",
        [
            b"",
            b"<html>not found</html>",
            b"[]",
            b"null",
            b"{}",
            b'{"one": {"models": {}}}',
            catalogue()[:-10],
            b"[" * 100_000,
            b"\xff\xfe",
        ],
        ids=["empty", "page", "list", "null", "nobody", "nothing", "cut", "deep", "no text"],
    )
    def test_is_not_taken_from_junk(self, raw: bytes) -> None:
        with pytest.raises(CatalogueInvalid):
            parse_prices(raw)

    def test_is_not_taken_where_there_is_too_much(self) -> None:
        with pytest.raises(CatalogueInvalid):
            parse_prices(catalogue() + b" " * MOST_BYTES)

    def test_is_not_taken_where_there_are_too_many(self) -> None:
        most = MOST_MODELS - 1  # with their provider
        assert len(parse_prices(catalogue({f"{n}": MODEL for n in range(3)}))) == 3
        with pytest.raises(CatalogueInvalid):
            parse_prices(catalogue({f"{n}": {} for n in range(most + 1)}))
        with pytest.raises(CatalogueInvalid):
            parse_prices(catalogue(**{f"{n}": 1 for n in range(most + 1)}))
