"""What must hold in each thread: nothing that was said is lost, doubled or out of order.

The model answers each message with :func:`answer_to`, so the whole conversation is known.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from app.bench.chaos.promises import Violation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

INCOMPLETE = "stoa_incomplete"


def answer_to(text: str) -> str:
    """What the model says to a message."""
    return f"You said: {text}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A run of the thread: what was said, and how it ended."""

    run_id: str
    text: str | None
    state: str
    rolled_back: bool


@dataclass(slots=True)
class _Turn:
    """A message of the person's, and what the agent said before the next one."""

    text: str
    whole: list[str] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)


def broken_turns(
    thread_id: str, runs: Sequence[Asked], messages: Sequence[Mapping[str, Any]]
) -> Iterator[Violation]:
    """Compare a thread's messages with its runs, which come in the order of acceptance."""
    turns = list(_turns(messages))
    said = Counter(turn.text for turn in turns)
    ids = Counter(message["id"] for message in messages)
    for run in runs:
        if run.text is None:
            continue
        where, times = f"thread {thread_id}, run {run.run_id}", said.pop(run.text, 0)
        if times > 1:
            yield Violation("a message is doubled", where)
        if times == 0 and run.state == "success":
            yield Violation("a message is lost", where)
        if times and run.rolled_back:
            yield Violation("a message outlived its rollback", where)
    for text in said:
        yield Violation("a thread holds what nobody said", f"thread {thread_id}: {text}")
    if any(count > 1 for count in ids.values()):
        yield Violation("a message is doubled", f"thread {thread_id}: two have one id")
    order = [run.text for run in runs if run.text is not None]
    if (places := [order.index(turn.text) for turn in turns if turn.text in order]) != sorted(
        places
    ):
        yield Violation("messages are out of order", f"thread {thread_id}")
    succeeded = {run.text for run in runs if run.state == "success"}
    for turn in turns:
        yield from _broken_answers(thread_id, turn, succeeded=turn.text in succeeded)


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[_Turn]:
    turn = _Turn("")
    for message in messages:
        if message["type"] == "human":
            if turn.text:
                yield turn
            turn = _Turn(str(message["content"]))
        elif message["type"] == "ai":
            marked = INCOMPLETE in message["response_metadata"]
            (turn.parts if marked else turn.whole).append(str(message["content"]))
    if turn.text or turn.whole or turn.parts:
        yield turn


def _broken_answers(thread_id: str, turn: _Turn, *, succeeded: bool) -> Iterator[Violation]:
    where = f"thread {thread_id}, message {turn.text[:40]!r}"
    if len(turn.whole) > 1:
        yield Violation("an answer is doubled", where)
    if not turn.whole and succeeded:
        yield Violation("an answer is lost", where)
    if any(answer != answer_to(turn.text) for answer in turn.whole):
        yield Violation("an answer is not what the model said", where)
    if any(not answer_to(turn.text).startswith(part) for part in turn.parts):
        yield Violation("an answer is not what the model said", f"{where}, incomplete")
