"""One child process of ``stoa dev``, with small programs in the place of the real ones."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest

from app.dev.errors import DevelopmentError
from app.dev.supervisor.output import ChildOutput
from app.dev.supervisor.program import Plan, Program

TAKES_TURN = """
import socket, sys
turn = socket.socket(fileno=int(sys.argv[sys.argv.index("--turn-socket") + 1]))
print("waiting", flush=True)
if turn.recv(1):
    print("working", flush=True)
    turn.send(b"!")
    sys.stdin.read()
"""

Start = Callable[..., Program]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    async with AsyncExitStack() as stack:

        def make(code: str, sink: io.StringIO, *, takes_turn: bool = False) -> Program:
            plan = Plan("small", (sys.executable, "-c", code), {}, takes_turn=takes_turn)
            program = Program(plan, ChildOutput("small", sink))
            stack.push_async_callback(program.stop)
            return program

        yield make


class TestTurns:
    async def test_it_begins_when_it_is_let_go_and_says_when_it_is_ready(
        self, start: Start
    ) -> None:
        said = io.StringIO()
        program = start(TAKES_TURN, said, takes_turn=True)
        await program.spawn()
        program.let_go()
        await program.ready()
        await program.stop()
        assert said.getvalue().splitlines() == ["small    | waiting", "small    | working"]

    async def test_one_that_is_never_let_go_ends_with_its_starter(self, start: Start) -> None:
        program = start(TAKES_TURN, io.StringIO(), takes_turn=True)
        await program.spawn()
        await program.stop()
        assert program.pid is None


class TestAProgramThatCannotStart:
    async def test_is_reported_with_the_last_it_said(self, start: Start) -> None:
        code = "import sys; [print(i) for i in range(50)]; sys.exit('no such table')"
        program = start(code, io.StringIO(), takes_turn=True)
        await program.spawn()
        program.let_go()
        with pytest.raises(DevelopmentError) as caught:
            await program.ready()
        assert "small could not start (exit status 1)" in str(caught.value)
        assert "no such table" in str(caught.value)
        assert "\n3\n" not in str(caught.value)

    async def test_a_step_that_fails_is_reported_too(self, start: Start) -> None:
        program = start("raise SystemExit(3)", io.StringIO())
        await program.spawn()
        with pytest.raises(DevelopmentError, match="exit status 3"):
            await program.finished()


class TestOutput:
    async def test_lines_without_an_end_and_bytes_that_are_no_text_pass_through(
        self, start: Start
    ) -> None:
        said = io.StringIO()
        code = "import sys; sys.stdout.buffer.write(b'\\xff' * 10_000 + b'\\nlast')"
        program = start(code, said)
        await program.spawn()
        await program.finished()
        await program.stop()
        lines = said.getvalue().splitlines()
        assert lines[-1] == "small    | last"
        assert all(len(line) <= 4_100 for line in lines)
