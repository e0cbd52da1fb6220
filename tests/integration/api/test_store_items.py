"""LangGraph's store over HTTP: each field does what it says, or is refused."""

from __future__ import annotations

from typing import Any

import asyncpg
import httpx
import pytest

from tests.support.service import RunningService

NOTE: dict[str, Any] = {"namespace": ["notes", "travel"], "key": "lisbon", "value": {"n": 1}}


async def put(http: httpx.AsyncClient, **item: Any) -> None:
    answer = await http.put("/store/items", json={**NOTE, **item})
    assert answer.status_code == 204, answer.text


async def get(http: httpx.AsyncClient, namespace: str = "notes.travel", **query: Any) -> Any:
    answer = await http.get(
        "/store/items", params={"namespace": namespace, "key": "lisbon"} | query
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def search(http: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    answer = await http.post("/store/items/search", json=body)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


class TestAnItem:
    async def test_is_kept_replaced_and_deleted(self, service: RunningService) -> None:
        http = service.client("keeps-items")
        await put(http)
        first = await get(http)
        assert (first["namespace"], first["key"]) == (["notes", "travel"], "lisbon")
        await put(http, value={"n": {"of": ["anything", None, 1.5]}})
        item = await get(http)
        assert item["value"] == {"n": {"of": ["anything", None, 1.5]}}
        assert item["created_at"] == first["created_at"]
        assert item["updated_at"] > first["updated_at"]
        gone = {"namespace": NOTE["namespace"], "key": NOTE["key"]}
        assert (await http.request("DELETE", "/store/items", json=gone)).status_code == 204
        assert await get(http) is None

    async def test_is_nobody_elses(self, service: RunningService) -> None:
        alice, bob = service.client("alice-items"), service.client("bob-items")
        await put(alice)
        me = (await alice.get("/me")).json()["user_id"]
        assert await get(bob) is None
        assert await get(bob, namespace=f"{me}.notes.travel") is None
        assert await search(bob) == await search(bob, namespace_prefix=[me]) == []
        assert await search(bob, query="anything lisbon") == []
        namespaces = await bob.post("/store/namespaces", json={})
        assert namespaces.json() == {"namespaces": []}
        await put(bob, value={"n": 2})
        assert (await get(alice))["value"] == {"n": 1}

    async def test_is_gone_when_its_time_is_over(self, service: RunningService) -> None:
        http = service.client("forgets")
        await put(http, ttl=60)
        connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
        me = (await http.get("/me")).json()["user_id"]
        try:
            left = "SELECT extract(epoch FROM expires_at - now()) FROM store WHERE user_id = $1"
            assert 3500 < await connection.fetchval(left, me) <= 3600
            shorter = "UPDATE store SET expires_at = now() + $2 * interval '1 s' WHERE user_id = $1"
            await connection.execute(shorter, me, 600)
            await get(http, refresh_ttl="false")
            assert await connection.fetchval(left, me) <= 600
            await search(http, refresh_ttl=False)
            await search(http, refresh_ttl=False, query="lisbon")
            assert await connection.fetchval(left, me) <= 600
            await get(http)
            assert await connection.fetchval(left, me) > 3500
            await connection.execute(shorter, me, 600)
            await put(http, key="found", value={"text": "lisbon"}, ttl=60)
            await connection.execute(shorter, me, 600)
            assert [item["key"] for item in await search(http, query="lisbon")] == ["found"]
            refreshed = f"{left} AND key = 'found'"
            assert await connection.fetchval(refreshed, me) > 3500
            await connection.execute(shorter, me, -1)
        finally:
            await connection.close()
        assert await get(http) is None
        assert await search(http) == await search(http, query="lisbon") == []
        assert (await http.post("/store/namespaces", json={})).json() == {"namespaces": []}

    @pytest.mark.parametrize(
        "change",
        [
            {"namespace": []},
            {"namespace": [""]},
            {"namespace": ["a.b"]},
            {"namespace": ["langgraph", "a"]},
            {"namespace": ["a"] * 21},
            {"namespace": ["a" * 1001]},
            {"namespace": "a"},
            {"key": ""},
            {"key": "ä" * 501},
            {"value": None},
            {"value": []},
            {"index": False},
            {"index": ["n"]},
            {"ttl": 0},
            {"ttl": -1},
            {"ttl": 0.5},
            {"ttl": 10**9},
            {"user_id": "somebody"},
        ],
        ids=lambda change: str(change)[:40],
    )
    async def test_is_refused_where_a_field_cannot_do_what_it_says(
        self, service: RunningService, change: dict[str, Any]
    ) -> None:
        http = service.client("odd-items")
        answer = await http.put("/store/items", json={**NOTE, **change})
        assert answer.status_code == 422, answer.text
        assert await search(http) == []

    async def test_may_have_the_longest_names(self, service: RunningService) -> None:
        http = service.client("long-names")
        await put(http, namespace=["a" * 1000], key="b" * 1000)
        assert (await get(http, namespace="a" * 1000, key="b" * 1000))["value"] == {"n": 1}

    @pytest.mark.parametrize(
        "query",
        [
            {"namespace": ""},
            {"namespace": "a..b"},
            {"namespace": "langgraph.a"},
            {"namespace": "a\0b"},
            {"key": "a\0"},
            {"refresh_ttl": "sometimes"},
            {"other": "1"},
        ],
        ids=str,
    )
    async def test_cannot_be_asked_for_by_what_is_no_name(
        self, service: RunningService, query: dict[str, str]
    ) -> None:
        http = service.client("odd-questions")
        params = {"namespace": "a", "key": "b"} | query
        assert (await http.get("/store/items", params=params)).status_code == 422


class TestASearch:
    async def test_lists_pages_below_a_namespace_newest_first(
        self, service: RunningService
    ) -> None:
        http = service.client("lists-items")
        for number in range(4):
            await put(http, key=f"{number}", value={"n": number})
        await put(http, namespace=["notes2"], key="beside")
        found = await search(http, namespace_prefix=["notes"], limit=2, offset=1)
        assert [item["key"] for item in found] == ["2", "1"]
        assert found[0]["score"] is None
        assert len(await search(http)) == 5

    async def test_keeps_to_labels_that_mean_something_to_the_database(
        self, service: RunningService
    ) -> None:
        http = service.client("odd-labels")
        for label in ("%", "_", "a", "a%", "\\", "'", "*"):
            await put(http, namespace=[label, "x"], value={"text": "lisbon"})
        for label in ("%", "_", "a", "\\", "'"):
            for query in (None, "lisbon"):
                found = await search(http, namespace_prefix=[label], query=query)
                assert [item["namespace"] for item in found] == [[label, "x"]]

    async def test_filters_and_finds_words(self, service: RunningService) -> None:
        http = service.client("finds-items")
        for number, text in enumerate(("trams in Lisbon", "trams in Porto", "the harbour")):
            await put(http, key=f"{number}", value={"text": text, "n": number})
        assert [i["key"] for i in await search(http, query="tram", filter={"n": {"$gt": 0}})] == [
            "1"
        ]
        assert [i["key"] for i in await search(http, filter={"text": "the harbour"})] == ["2"]
        found = await search(http, query="Lisbon trams")
        assert [item["key"] for item in found] == ["0", "1"]
        assert found[0]["score"] > found[1]["score"]

    async def test_is_cut_where_it_would_be_too_large(self, service: RunningService) -> None:
        http = service.client("large-items")
        for number in range(40):
            await put(http, key=f"{number}", value={"text": "a" * 240_000})
        answer = await http.post("/store/items/search", json={"limit": 100})
        count = len(answer.json()["items"])
        assert 0 < count < 40
        assert answer.headers["X-Pagination-Next"] == str(count)
        rest = await http.post("/store/items/search", json={"limit": 100, "offset": count})
        assert count + len(rest.json()["items"]) == 40
        assert "X-Pagination-Next" not in rest.headers

    @pytest.mark.parametrize(
        "body",
        [
            {"limit": 0},
            {"limit": 1001},
            {"offset": -1},
            {"filter": {"n": {"$near": 1}}},
            {"filter": {"n": {}}},
            {"filter": {"n": {"a": 1}}},
            {"namespace_prefix": ["a.b"]},
            {"query": "a" * 2001},
            {"refresh_ttl": "yes"},
            {"mode": "sense"},
        ],
        ids=lambda body: str(body)[:40],
    )
    async def test_is_refused_where_a_field_cannot_do_what_it_says(
        self, service: RunningService, body: dict[str, Any]
    ) -> None:
        http = service.client("odd-searches")
        assert (await http.post("/store/items/search", json=body)).status_code == 422


class TestNamespaces:
    async def test_are_listed_by_prefix_suffix_and_depth(self, service: RunningService) -> None:
        http = service.client("lists-namespaces")
        for namespace in (["a", "b", "c"], ["a", "x"], ["d", "c"]):
            await put(http, namespace=namespace)

        async def listed(**body: Any) -> list[list[str]]:
            answer = await http.post("/store/namespaces", json=body)
            assert answer.status_code == 200, answer.text
            return sorted(answer.json()["namespaces"])

        assert await listed() == [["a", "b", "c"], ["a", "x"], ["d", "c"]]
        assert await listed(prefix=["a"]) == [["a", "b", "c"], ["a", "x"]]
        assert await listed(suffix=["c"]) == [["a", "b", "c"], ["d", "c"]]
        assert await listed(prefix=["*", "b"]) == [["a", "b", "c"]]
        assert await listed(max_depth=1) == [["a"], ["d"]]
        assert len(await listed(limit=1)) == 1
        assert len(await listed(offset=1)) == 2
        for body in ({"max_depth": 0}, {"prefix": ["a.b"]}, {"limit": 0}, {"suffix": [""]}):
            assert (await http.post("/store/namespaces", json=body)).status_code == 422


class TestAsManyItemsAsCanBeSearchedInAMoment:
    async def test_are_kept_however_small_they_are(self, service: RunningService) -> None:
        http = service.client("keeps-crumbs")
        await put(http)
        connection = await asyncpg.connect(service.postgres.dsn("owner", service.database))
        try:
            await connection.execute("SET session_replication_role = replica")  # no index of words
            await connection.execute(
                "INSERT INTO store (user_id, prefix, key, value)"
                " SELECT $1::text::uuid, $1::text || '.notes.travel', n::text, '{}'"
                " FROM generate_series(2, 50000) n",
                (await http.get("/me")).json()["user_id"],
            )
        finally:
            await connection.close()
        refused = await http.put("/store/items", json={**NOTE, "key": "one more"})
        assert (refused.status_code, refused.json()["code"]) == (429, "memory_full")
        await put(http)  # what is there already may be replaced
