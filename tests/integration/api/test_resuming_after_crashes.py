"""A worker that is lost after an answer: wherever that is, the answer counts once.

Given to LangGraph again once it was taken, it would answer what the same node asks next.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.integration.api import questioning
from tests.integration.api.questioning import status_of, waiting
from tests.support.frames import read_run
from tests.support.lost_writes import lose_a_write
from tests.support.postgres import PostgresServer
from tests.support.service import RunningService, running_service


@pytest.fixture(scope="module")
async def service(
    postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[RunningService]:
    """With heartbeats so rare that nobody but the run itself notices what becomes of it."""
    graphs = questioning.declare(tmp_path_factory.mktemp("graphs"))
    async with running_service(
        postgres, graphs=graphs, heartbeat_seconds=100, lease_seconds=300
    ) as running:
        yield running


WRITES = {"twice": 1, "nested": 2, "later": 3}
"""How often a graph stores something between the first answer and the next question."""


class TestAWorkerThatIsLostAfterAnAnswer:
    @pytest.mark.parametrize("is_committed", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize(
        ("graph", "at"), [(graph, at) for graph, most in WRITES.items() for at in range(most)]
    )
    async def test_has_it_count_once_and_the_next_question_is_asked(
        self,
        service: RunningService,
        monkeypatch: pytest.MonkeyPatch,
        graph: str,
        at: int,
        is_committed: bool,
    ) -> None:
        asked = await waiting(service.client(f"{graph}-{at}-{is_committed}"), graph)
        (first,) = await asked.questions()
        lose_a_write(monkeypatch, at, is_committed=is_committed)
        assert status_of(await asked.answer_and_read({first: "one"})) == "interrupted"
        assert (await asked.run())["attempt"] == 3
        (second,) = await asked.questions()
        assert second != first
        assert status_of(await asked.answer_and_read({second: "two"})) == "success"
        told = [each for each in await asked.told() if each != "between"]
        assert [each.partition(" ")[2] for each in told] == ["one", "two"]

    async def test_of_several_questions_at_once_asks_only_those_that_are_open(
        self, service: RunningService, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked = await waiting(service.client("beside"), "beside")
        ids = {question: id_ for id_, question in (await asked.questions()).items()}
        lose_a_write(monkeypatch, is_committed=True)
        await asked.answer_and_read({ids["left?"]: "l"})
        assert await asked.questions() == {ids["right?"]: "right?"}
        await asked.answer({ids["right?"]: "r"})
        assert status_of(await read_run(asked.client, asked.location)) == "success"
        assert sorted(await asked.told()) == ["left? l", "right? r"]
