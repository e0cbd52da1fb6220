"""What goes over a connection: listings that change, questions, progress, long answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from app.tools.pool.failures import Reason, ToolServerUnavailable
from app.tools.pool.http import operators_client
from app.tools.pool.pages import MAX_PAGES
from app.tools.pool.pool import ToolPool
from app.tools.questions import Asked, CallQuestions, Question, Reply, questions_of_call
from app.tools.servers import Credential, CredentialKind, CredentialRule, McpServer
from app.tools.stdio import child
from tests.support.tool_servers.http import HttpToolServer, http_tool_server
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    SECONDS,
    at,
    called,
    impatient,
    quick,
    running_pool,
    said,
    somebody,
    text_of,
    until,
)

NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
WHO = Question("Who?", NAME)


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ToolPool]:
    async with running_pool(tmp_path) as pool:
        yield pool


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """With servers that hang, once their input is closed."""
    monkeypatch.setattr(child, "INPUT_CLOSED_SECONDS", 0.1)


@pytest.fixture
async def far() -> AsyncIterator[HttpToolServer]:
    async with http_tool_server() as running:
        yield running


async def asking(
    pool: ToolPool, server: McpServer, tool: str, replies: dict[str, Reply], **arguments: Any
) -> str:
    """Call a tool as a person who has answered so far."""
    token = questions_of_call.set(CallQuestions(replies))
    try:
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            return await said(connection, tool, **arguments)
    finally:
        questions_of_call.reset(token)


class TestListings:
    async def test_an_endless_one_ends(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick("endless"), NO_CREDENTIAL) as connection:
            assert len(connection.tools) == MAX_PAGES

    async def test_a_new_tool_is_there_when_the_server_says_so(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            before = connection.listing_version
            await called(connection, "announce")
            await until(lambda: connection.listing_version != before)
            assert "new" in [each.name for each in connection.tools]

    async def test_a_server_that_is_busy_when_asked_for_it_is_asked_again(
        self, pool: ToolPool
    ) -> None:
        async with pool.lease(somebody(), quick("slow-relist"), NO_CREDENTIAL) as connection:
            (opened,) = pool._tasks
            opened.server = replace(opened.server, timeouts=impatient(listing=0.5))
            await called(connection, "announce")
            await until(lambda: "new" in [each.name for each in connection.tools])
            assert await said(connection, "whoami")

    async def test_so_it_is_with_servers_that_tell_only_whoever_asks(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            await far.is_listened_to(1)
            await called(connection, "grow")
            await until(lambda: "grown" in [each.name for each in connection.tools])

    async def test_only_what_the_operator_offers_is_listed(self, pool: ToolPool) -> None:
        server = quick(allow=frozenset({"note", "ask"}), deny=frozenset({"ask"}))
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            assert [each.name for each in connection.tools] == ["note"]


class TestAnswers:
    async def test_progress_and_what_goes_with_a_call_arrive(self, pool: ToolPool) -> None:
        heard: list[tuple[float, float | None, str | None]] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            heard.append((done, total, message))

        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            meta = {"stoa.example/key": "k"}
            result = await connection.call(
                "report", {}, meta=meta, seconds=SECONDS, progress=progress
            )
            await until(lambda: heard)
        assert json.loads(text_of(result))["stoa.example/key"] == "k"
        assert heard == [(1, 2, "half")]

    async def test_an_error_of_the_tool_is_a_result(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            assert (await called(connection, "fail")).is_error

    async def test_ten_megabytes_are_read(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            assert len(await said(connection, "large", size=10_000_000)) == 10_000_000

    async def test_more_than_is_read_ends_the_connection(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            with pytest.raises(ToolServerUnavailable) as caught:
                await called(connection, "large", size=20_000_000)
        assert caught.value.reason == Reason.PROTOCOL

    async def test_nor_is_it_over_http(self, pool: ToolPool, far: HttpToolServer) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            with pytest.raises(ToolServerUnavailable):
                await called(connection, "large")


class TestQuestions:
    """Over both: servers that ask in mid-call, and those that want to be called again."""

    async def test_stop_the_call_until_they_are_answered(self, pool: ToolPool) -> None:
        with pytest.raises(Asked) as caught:
            await asking(pool, quick(), "ask", {})
        assert caught.value.questions == (WHO,)

    async def test_are_answered_with_what_the_person_said(self, pool: ToolPool) -> None:
        replies = {WHO.key: Reply("accept", {"name": "Ann"})}
        answer = json.loads(await asking(pool, quick(), "ask", replies))
        assert answer == {"action": "accept", "content": {"name": "Ann"}}

    async def test_are_declined_where_the_person_declines(self, pool: ToolPool) -> None:
        answer = json.loads(await asking(pool, quick(), "ask", {WHO.key: Reply("decline")}))
        assert answer == {"action": "decline"}

    async def test_are_cancelled_where_nobody_can_be_asked(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
            assert json.loads(await said(connection, "ask")) == {"action": "cancel"}

    async def test_are_cancelled_where_it_is_not_clear_who_is_asked(self, pool: ToolPool) -> None:
        token = questions_of_call.set(CallQuestions({WHO.key: Reply("accept", {"name": "Ann"})}))
        try:
            async with pool.lease(somebody(), quick(), NO_CREDENTIAL) as connection:
                answers = await asyncio.gather(said(connection, "ask"), said(connection, "ask"))
        finally:
            questions_of_call.reset(token)
        assert json.loads(answers[0]) == {"action": "cancel"}

    async def test_too_long_for_a_person_are_cancelled(self, pool: ToolPool) -> None:
        answer = await asking(pool, quick(), "ask", {}, message="x" * 100_000)
        assert json.loads(answer) == {"action": "cancel"}

    async def test_of_a_call_to_be_made_again_stop_it_without_another_request(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        # Given a server of the protocol of 2026
        with pytest.raises(Asked) as caught:
            await asking(pool, at(far.url), "greet", {})
        (question,) = caught.value.questions
        assert question.message == "Who are you?"
        calls = [h for h in far.headers("mcp-method") if h == "tools/call"]
        assert len(calls) == 1

        # When the person has answered, and the call is made once more
        replies = {question.key: Reply("accept", {"name": "Ann"})}

        # Then it is made with the answer
        assert await asking(pool, at(far.url), "greet", replies) == "hello Ann"


class TestHttp:
    async def test_a_persons_header_goes_with_every_request(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        credential = Credential(1, {"Authorization": "Bearer first"})
        owner = somebody()
        async with pool.lease(owner, at(far.url), credential) as connection:
            await called(connection, "add", a=1, b=2)
        assert far.requests
        assert set(far.headers("authorization")) == {"Bearer first"}

        # and after a rotation the old one never again
        pool.forget(owner, "far")
        await until(lambda: pool.open_connections == 0)
        far.requests.clear()
        newer = Credential(2, {"Authorization": "Bearer second"})
        async with pool.lease(owner, at(far.url), newer) as connection:
            await called(connection, "add", a=1, b=2)
        assert set(far.headers("authorization")) == {"Bearer second"}

    @pytest.mark.parametrize(
        ("kind", "status", "reason"),
        [
            (CredentialKind.OAUTH, 401, Reason.NEEDS_AUTHORIZATION),
            (CredentialKind.HEADER, 401, Reason.NEEDS_KEY),
            (CredentialKind.HEADER, 403, Reason.REFUSED),
        ],
    )
    async def test_a_credential_that_is_refused_is_told_of(
        self,
        pool: ToolPool,
        far: HttpToolServer,
        kind: CredentialKind,
        status: int,
        reason: Reason,
    ) -> None:
        far.status = status
        server = at(far.url, credential=CredentialRule(kind))
        with pytest.raises(ToolServerUnavailable) as caught:
            async with pool.lease(somebody(), server, NO_CREDENTIAL):
                pass
        assert caught.value.reason == reason

    async def test_an_error_of_the_protocol_is_an_answer(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            assert (await called(connection, "send_away")).is_error
            assert not (await called(connection, "add", a=1, b=2)).is_error

    async def test_one_that_is_refused_under_way_ends_the_connection(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        server = at(far.url, credential=CredentialRule(CredentialKind.HEADER))
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            far.status = 401
            with pytest.raises(ToolServerUnavailable) as caught:
                await called(connection, "add", a=1, b=2)
        assert caught.value.reason == Reason.NEEDS_KEY

    async def test_of_two_calls_only_the_one_that_was_refused_is_known_to_be_unheard(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        server = at(far.url, credential=CredentialRule(CredentialKind.OAUTH))
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:

            async def call(tool: str, key: str) -> bool:
                with pytest.raises(ToolServerUnavailable) as caught:
                    await connection.call(tool, {}, meta={"example.com/key": key}, seconds=SECONDS)
                assert caught.value.reason == Reason.NEEDS_AUTHORIZATION
                return caught.value.is_unheard

            under_way = asyncio.create_task(call("hang", "first"))
            await far.hanging.wait()
            await far.has_listed_all(1)
            far.status = 401
            assert await call("large", "second")
            assert not await under_way
            assert await call("large", "third")  # there is nothing to send it over any more

    async def test_a_redirect_is_not_followed_even_within_the_same_place(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        far.status, far.location = 307, f"{far.url}/elsewhere"
        with pytest.raises(ToolServerUnavailable):
            async with pool.lease(somebody(), at(far.url), Credential(1, {"X-Key": "k"})):
                pass
        assert far.paths == {"/mcp"}

    async def test_nothing_at_the_address_is_told_of(self, pool: ToolPool) -> None:
        with pytest.raises(ToolServerUnavailable) as caught:
            async with pool.lease(somebody(), at("http://127.0.0.1:9/mcp"), NO_CREDENTIAL):
                pass
        assert caught.value.reason == Reason.UNREACHABLE

    async def test_an_address_that_never_answers_is_given_up(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        far.silent = True
        server = at(far.url, timeouts=impatient(connect=0.3))
        with pytest.raises(ToolServerUnavailable) as caught:
            async with pool.lease(somebody(), server, NO_CREDENTIAL):
                pass
        assert caught.value.reason == Reason.TIMEOUT

    async def test_a_call_that_hangs_is_given_up_and_others_go_on(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            hanging = asyncio.create_task(called(connection, "hang"))
            await far.hanging.wait()
            assert await said(connection, "add", a=1, b=2) == "3"
            hanging.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hanging
            assert await said(connection, "add", a=1, b=2) == "3"

    async def test_a_server_that_goes_away_in_mid_call_is_told_of(
        self, pool: ToolPool, far: HttpToolServer
    ) -> None:
        async with pool.lease(somebody(), at(far.url), NO_CREDENTIAL) as connection:
            hanging = asyncio.create_task(called(connection, "hang"))
            await far.hanging.wait()
            far.cut()
            with pytest.raises(ToolServerUnavailable):
                await hanging

    @pytest.mark.parametrize("stubborn", ["silent", "endless"])
    async def test_a_server_that_does_not_let_go_is_left(
        self,
        pool: ToolPool,
        far: HttpToolServer,
        monkeypatch: pytest.MonkeyPatch,
        stubborn: str,
    ) -> None:
        # Given an open session that the server will not end when asked to
        monkeypatch.setattr("app.tools.pool.connection.CLOSE_SECONDS", 0.3)
        far.older = True
        owner = somebody()
        async with pool.lease(owner, at(far.url), NO_CREDENTIAL) as connection:
            await called(connection, "add", a=1, b=2)
        assert far.headers("mcp-session-id")[-1]
        setattr(far, stubborn, True)

        # When it is to be closed
        pool.forget(owner, "far")

        # Then nobody waits for the server
        await until(lambda: pool.open_connections == 0)

    async def test_a_name_that_a_user_gave_is_in_no_log(self, tmp_path: Path) -> None:
        own = at("http://127.0.0.1:9/mcp", name="a-persons-words", is_own=True)
        with capture_logs() as lines:
            async with running_pool(tmp_path, own_clients=lambda _: operators_client) as pool:
                with pytest.raises(ToolServerUnavailable):
                    async with pool.lease(somebody(), own, NO_CREDENTIAL):
                        pass
        assert "tool server lost" in [line["event"] for line in lines]
        assert "persons-words" not in str(lines)

    async def test_a_users_own_server_is_reached_by_the_guarded_way_only(
        self, tmp_path: Path, far: HttpToolServer
    ) -> None:
        from app.outbound import guarded_mcp_client_factory  # noqa: PLC0415 - only here

        own = at(far.url, is_own=True)
        async with running_pool(tmp_path, own_clients=guarded_mcp_client_factory) as pool:
            with pytest.raises(ToolServerUnavailable) as caught:
                async with pool.lease(somebody(), own, NO_CREDENTIAL):
                    pass
        assert caught.value.reason == Reason.REFUSED
        assert not far.requests


class TestLinesWithoutAnEndThatSayNothing:
    async def test_end_the_connection(self, pool: ToolPool) -> None:
        with pytest.raises(ToolServerUnavailable) as lost:
            async with pool.lease(somebody(), quick("blank"), NO_CREDENTIAL):
                pass
        assert lost.value.reason == Reason.PROTOCOL
