"""The reference servers, each listed and called through the pool."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.tools.pool.failures import ToolServerUnavailable
from app.tools.pool.pool import ToolPool
from app.tools.questions import Asked, CallQuestions, Reply, questions_of_call
from tests.support.tool_servers.pools import (
    NO_CREDENTIAL,
    at,
    called,
    impatient,
    running_pool,
    said,
    somebody,
    text_of,
)
from tests.support.tool_servers.real import by_node, by_python, everything_over_http


@pytest.fixture(scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ToolPool]:
    """Sandboxed where the machine can: that is how they run in a deployment."""
    async with running_pool(tmp_path_factory.mktemp("real"), "auto") as pool:
        yield pool


class TestStdio:
    async def test_time(self, pool: ToolPool) -> None:
        server = by_python("mcp-server-time", "--local-timezone", "UTC")
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            assert {"get_current_time", "convert_time"} <= {e.name for e in connection.tools}
            noon = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
            answer = json.loads(await said(connection, "convert_time", **noon))
        assert answer["time_difference"] == "+9.0h"

    async def test_fetch(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), by_python("mcp-server-fetch"), NO_CREDENTIAL) as found:
            assert [each.name for each in found.tools] == ["fetch"]
            result = await called(found, "fetch", url="http://127.0.0.1:9/")
        assert result.is_error

    async def test_memory_of_two_people(self, pool: ToolPool) -> None:
        server = by_node("memory", env={"MEMORY_FILE_PATH": "{user_folder}/memory.json"})
        ann, ben = somebody(), somebody()
        entity = {"name": "Ann", "entityType": "person", "observations": ["likes tea"]}
        async with (
            pool.lease(ann, server, NO_CREDENTIAL) as hers,
            pool.lease(ben, server, NO_CREDENTIAL) as his,
        ):
            await called(hers, "create_entities", entities=[entity])
            assert "likes tea" in text_of(await called(hers, "read_graph"))
            assert "likes tea" not in text_of(await called(his, "read_graph"))

    async def test_filesystem_of_ones_own_folder(self, pool: ToolPool) -> None:
        server = by_node("filesystem", "{user_folder}")
        async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
            folder = (await said(connection, "list_allowed_directories")).splitlines()[-1]
            path = f"{folder}/note.txt"
            await called(connection, "write_file", path=path, content="mine")
            assert await said(connection, "read_text_file", path=path) == "mine"
            other = await called(connection, "read_text_file", path="/etc/hostname")
        assert other.is_error
        assert Path(path).read_text(encoding="utf-8") == "mine"

    async def test_everything(self, pool: ToolPool) -> None:
        async with pool.lease(somebody(), by_node("everything"), NO_CREDENTIAL) as connection:
            assert "echo" in {each.name for each in connection.tools}
            assert await said(connection, "echo", message="hello") == "Echo: hello"


class TestHttp:
    async def test_everything(self, pool: ToolPool) -> None:
        async with everything_over_http() as (url, process):
            server = at(url, timeouts=impatient())
            async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
                assert await said(connection, "get-sum", a=1, b=2) == "The sum of 1 and 2 is 3."
                process.kill()
                with pytest.raises(ToolServerUnavailable):
                    await called(connection, "get-sum", a=1, b=2)

    async def test_its_questions_are_put_and_answered(self, pool: ToolPool) -> None:
        async with everything_over_http() as (url, _):
            server = at(url, timeouts=impatient())
            asked = CallQuestions()
            token = questions_of_call.set(asked)
            try:
                async with pool.lease(somebody(), server, NO_CREDENTIAL) as connection:
                    with pytest.raises(Asked) as caught:
                        await called(connection, "trigger-elicitation-request")
                    (question,) = caught.value.questions
                    asked.open.clear()
                    asked.replies = {question.key: Reply("decline")}
                    result = await called(connection, "trigger-elicitation-request")
            finally:
                questions_of_call.reset(token)
        assert "declined" in str(result.content)
