"""From settings to pools: what is declared, and what is refused before anything starts."""

from __future__ import annotations

from typing import Any

import pytest

from app.settings import PoolSettings, Settings, SettingsError
from app.sharing import chat_models, declared_pools, default_limits, default_pool, full_name

FIRST = {"name": "first", "url": "http://one.test:11434"}
SECOND = {"name": "second", "url": "http://two.test:11434"}


def settings(*pools: dict[str, Any], **others: Any) -> Settings:
    tables = tuple(PoolSettings.model_validate(pool) for pool in pools)
    return Settings(pool=tables, model="smollm2", **others)


class TestOneModelServer:
    def test_is_one_pool_with_its_capacity(self) -> None:
        (pool,) = declared_pools(settings(ollama_url="http://host.test/", ollama_capacity=3))
        assert (pool.pool, pool.url, pool.capacity) == ("default", "http://host.test", 3)
        assert pool.model == "smollm2:latest"
        assert pool.server_capacity is None


class TestSeveralPools:
    def test_have_the_default_model_and_window_unless_they_say_otherwise(self) -> None:
        small, large = declared_pools(
            settings(
                FIRST,
                {**SECOND, "model": "large:8b", "context": 8192, "output": 2048, "capacity": 4},
                model_context=4096,
                model_output=512,
            )
        )
        assert (small.model, small.context, small.output) == ("smollm2:latest", 4096, 512)
        assert (large.model, large.context, large.output) == ("large:8b", 8192, 2048)
        assert large.capacity == 4

    def test_the_default_models_pool_says_how_large_its_window_is(self) -> None:
        chosen = settings({**FIRST, "model": "other"}, {**SECOND, "context": 1024})
        assert default_pool(chosen).context == 1024

    def test_two_models_share_a_server(self) -> None:
        pools = declared_pools(
            settings(
                {**FIRST, "server_capacity": 2},
                {"name": "embed", "url": FIRST["url"], "model": "minilm", "server_capacity": 2},
            )
        )
        assert {pool.server for pool in pools} == {"http://one.test:11434"}
        assert {pool.server_capacity for pool in pools} == {2}


class TestAnEmbeddingModel:
    def test_has_a_pool_of_its_own_on_the_only_server(self) -> None:
        chosen = settings(
            ollama_url="http://host.test/", ollama_capacity=3, embedding_model="minilm"
        )
        default, embedding = declared_pools(chosen)
        assert (default.pool, embedding.pool) == ("default", "embedding")
        assert (embedding.model, embedding.url) == ("minilm:latest", "http://host.test")
        assert embedding.capacity == 3
        assert default_pool(chosen) == default

    def test_that_is_the_default_model_shares_its_pool(self) -> None:
        assert len(declared_pools(settings(embedding_model="smollm2:latest"))) == 1

    def test_is_one_of_the_pools_that_are_named(self) -> None:
        embed = {**SECOND, "model": "minilm"}
        assert len(declared_pools(settings(FIRST, embed, embedding_model="minilm"))) == 2
        with pytest.raises(SettingsError, match=r"no \[\[pool\]\] has the model minilm"):
            declared_pools(settings(FIRST, embedding_model="minilm"))


class TestSettingsThatContradict:
    @pytest.mark.parametrize(
        ("pools", "said"),
        [
            ((FIRST, {**SECOND, "name": "first"}), "two pools have the name first"),
            ((FIRST, {**FIRST, "name": "again"}), "the same model on the same server"),
            ((FIRST, {**SECOND, "context": 1024}), "another `context` or `output`"),
            (
                ({**FIRST, "server_capacity": 1}, {**FIRST, "name": "b", "model": "b"}),
                "another `server_capacity`",
            ),
            (({**FIRST, "model": "other"},), "no [[pool]] has the default model smollm2"),
        ],
        ids=["name twice", "server twice", "windows", "server capacity", "no default model"],
    )
    def test_are_refused_with_what_is_wrong(self, pools: tuple[dict[str, Any]], said: str) -> None:
        with pytest.raises(SettingsError) as refused:
            declared_pools(settings(*pools))
        assert said in str(refused.value)

    def test_a_single_server_beside_pools_is_refused(self) -> None:
        with pytest.raises(SettingsError, match="name it in a"):
            declared_pools(settings(FIRST, ollama_url="http://three.test"))

    @pytest.mark.parametrize(
        "change",
        [{"capacity": 0}, {"capacity": -1}, {"name": ""}, {"url": "nowhere"}, {"sets": 1}],
        ids=str,
    )
    def test_a_pool_that_cannot_be_is_refused(self, change: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=next(iter(change))):
            PoolSettings.model_validate({**FIRST, **change})


def test_a_model_without_a_tag_is_the_latest() -> None:
    assert full_name("smollm2") == "smollm2:latest"
    assert full_name("smollm2:135m") == "smollm2:135m"


def test_everybodys_limits_are_the_settings() -> None:
    limits = default_limits(settings(max_running_per_user=2, tokens_per_day=100))
    assert limits["running"] == 2
    assert limits["tokens_per_day"] == 100
    assert limits["tokens_per_month"] is None


class TestTheModelsToChooseFrom:
    def test_are_those_of_the_pools_with_the_default_one_first(self) -> None:
        large = {"model": "large:8b", "context": 8192, "output": 2048, "provider": "far"}
        first, second = chat_models(
            settings(
                {**SECOND, **large},
                FIRST,
                {"name": "third", "url": "http://three.test", **large},
                model_images=True,
            )
        )
        assert (first.model, first.is_default, first.images) == ("smollm2:latest", True, True)
        assert (second.model, second.is_default, second.images) == ("large:8b", False, None)
        assert (second.context, second.prompt_tokens, second.provider) == (8192, 6144, "far")
        assert [pool.pool for pool in second.pools] == ["second", "third"]

    def test_are_without_the_one_that_measures_texts(self) -> None:
        (only,) = chat_models(settings(embedding_model="minilm"))
        assert only.model == "smollm2:latest"
        (only,) = chat_models(settings(embedding_model="smollm2"))
        assert only.model == "smollm2:latest"

    def test_read_images_as_their_pool_says(self) -> None:
        (only,) = chat_models(settings({**FIRST, "images": False}, model_images=True))
        assert only.images is False

    @pytest.mark.parametrize(
        "said", [{"images": True}, {"provider": "far"}], ids=["images", "whose"]
    )
    def test_are_each_the_same_wherever_a_call_goes(self, said: dict[str, Any]) -> None:
        with pytest.raises(SettingsError, match="first and second have the same model"):
            declared_pools(settings(FIRST, {**SECOND, **said}))
