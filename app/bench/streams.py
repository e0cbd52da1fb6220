"""``stoa bench streams``: an event's way from the model's socket to the client's.

A paced model server writes into each word when it was sent; clients subtract. Model, clients and
service share the machine and its monotonic clock. Beside it: what a stream costs the web process
in which nothing happens.
"""

from __future__ import annotations

import asyncio
import math
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import orjson
from rich.console import Console
from rich.table import Table

from app.bench.load import percentile
from app.bench.model import MODEL, PacedModel
from app.bench.service import BenchService, json_headers, lines, open_processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    import httpcore

STREAMS_PER_PERSON = 4
IDLE_STREAMS_PER_PERSON = 25
WARM_UP_SECONDS = 2.0
"""After the last of the streams has begun: beginnings cost more, and are measured elsewhere."""
GOAL_MS = {50: 60, 99: 150}
GOAL_IDLE_KB = 40
_IDLE = {"a thread's stream": "/threads/{thread_id}/stream", "a person's events": "/events"}
_DELTA = b"event: messages\ndata: "


@dataclass(slots=True)
class Ways:
    """How long words were under way, in seconds, while all streams were in flight."""

    streams: int
    words: list[float] = field(default_factory=list)
    frames: int = 0
    _begun: int = 0
    _ended: int = 0
    _measured_from: float = math.inf

    def begun(self) -> None:
        """One stream more has had its first word."""
        self._begun += 1
        if self._begun == self.streams:
            self._measured_from = time.monotonic() + WARM_UP_SECONDS

    def ended(self) -> None:
        """One stream less is in flight."""
        self._ended += 1

    def arrived(self, text: str) -> None:
        """Take note of a delta: one or more words, each the moment when it was sent."""
        now = time.monotonic()
        if now >= self._measured_from and not self._ended:
            self.frames += 1
            self.words += [now - float(sent) for sent in text.split()]


async def bench_streams(
    dsns: Mapping[str, str],
    *,
    streams: int,
    seconds: float,
    words_per_second: float,
    idle_streams: int,
) -> None:
    """Measure and print.

    Args:
        dsns: ``STOA_…_DATABASE_URL`` settings of a migrated database.
        streams: streams in flight, each of a run of its own.
        seconds: how long each answer takes.
        words_per_second: how fast the model says words, to each of them.
        idle_streams: streams in which nothing happens.
    """
    answer = " ".join(["word"] * round(seconds * words_per_second))
    model = PacedModel(lambda _: answer, 1 / words_per_second, _stamped)
    async with model, open_processes(dsns, _settings(model.url, streams)) as service:
        people = await service.sign_up(
            max(streams // STREAMS_PER_PERSON, idle_streams // IDLE_STREAMS_PER_PERSON) + 1
        )
        idle_kb = await _idle_cost(service, people, idle_streams)
        ways = Ways(streams)
        async with asyncio.TaskGroup() as group:
            for number in range(streams):
                headers = people[number // STREAMS_PER_PERSON]
                group.create_task(_follow_a_run(service, headers, ways))
    if not ways.words:
        raise RuntimeError("the first stream had ended before the last began: take more seconds")
    Console().print(_table(ways, streams, idle_streams, idle_kb))


def _stamped(_word: str) -> str:
    return f"{time.monotonic():.6f}"


def _settings(model_url: str, streams: int) -> dict[str, str]:
    return {
        "STOA_OLLAMA_URL": model_url,
        "STOA_MODEL": MODEL,
        "STOA_WORKER_CONCURRENCY": str(streams),
        "STOA_OLLAMA_CAPACITY": str(2 * streams),
        "STOA_REQUESTS_PER_MINUTE": "100000",
    }


async def _follow_a_run(service: BenchService, headers: dict[str, str], ways: Ways) -> None:
    body = orjson.dumps(
        {
            "assistant_id": "agent",
            "input": {"messages": [{"role": "user", "content": "Talk."}]},
            "stream_mode": ["messages-tuple"],
            "if_not_exists": "create",
        }
    )
    request = service.pool.stream(
        "POST",
        f"{service.origin}/threads/{uuid4()}/runs/stream",
        headers=lines({**headers, **json_headers(body)}),
        content=body,
    )
    last, has_begun = b"", False
    async with request as response:
        async for frame in _frames(response):
            if frame.startswith(_DELTA):
                if not has_begun:
                    has_begun = True
                    ways.begun()
                message = orjson.loads(frame.split(b"\n")[1].removeprefix(b"data: "))[0]
                ways.arrived(message["content"])
            last = frame
    ways.ended()
    if not last.startswith(b"event: end") or b'"success"' not in last:
        raise RuntimeError("a run did not succeed")


async def _frames(response: httpcore.Response) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in response.aiter_stream():
        *whole, rest = (rest + piece).split(b"\n\n")
        for frame in whole:
            yield frame


async def _idle_cost(
    service: BenchService, people: list[dict[str, str]], streams: int
) -> dict[str, float]:
    """What a stream in which nothing happens adds to the web process, in KB, by its kind."""
    cost: dict[str, float] = {}
    if not streams or _memory_kb(service.web_pid) is None:
        return cost
    async with AsyncExitStack() as warm:  # what the first streams load is no cost of one
        for path in _IDLE.values():
            await _open_idle(service, people, IDLE_STREAMS_PER_PERSON, path, warm)
    async with AsyncExitStack() as stack:  # one kind beside the other: none gets what another freed
        for kind, path in _IDLE.items():
            before = _memory_kb(service.web_pid) or 0
            await _open_idle(service, people, streams, path, stack)
            cost[kind] = ((_memory_kb(service.web_pid) or 0) - before) / streams
    return cost


async def _open_idle(
    service: BenchService,
    people: list[dict[str, str]],
    streams: int,
    path: str,
    stack: AsyncExitStack,
) -> None:
    body = b"{}"
    for number in range(streams):
        headers = people[number // IDLE_STREAMS_PER_PERSON]
        made = await service.pool.request(
            "POST",
            f"{service.origin}/threads",
            headers=lines({**headers, **json_headers(body)}),
            content=body,
        )
        thread_id = orjson.loads(made.content)["thread_id"]
        url = service.origin + path.format(thread_id=thread_id)
        await stack.enter_async_context(service.pool.stream("GET", url, headers=lines(headers)))
    await asyncio.sleep(1)  # until the last of them follows


def _memory_kb(pid: int) -> int | None:
    """What a process holds in memory; None on systems that do not say it in a file."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    return int(fields["VmRSS"].split()[0])


def _table(ways: Ways, streams: int, idle_streams: int, idle_kb: Mapping[str, float]) -> Table:
    table = Table(title="From the model's socket to the client's")
    for heading in ("", "measured", "goal"):
        table.add_column(heading, justify="left" if not heading else "right")
    for percent, goal in GOAL_MS.items():
        took = percentile(ways.words, percent) * 1000
        table.add_row(
            f"a word, p{percent} ms, {streams} streams in flight", f"{took:.0f}", f"≤ {goal}"
        )
    table.add_row("words measured", str(len(ways.words)), "")
    table.add_row("frames they came in", str(ways.frames), "")
    for kind, kb in idle_kb.items():
        about = f"{kind}, idle, KB, of {idle_streams}"
        table.add_row(about, f"{kb:.1f}", f"≤ {GOAL_IDLE_KB}")
    return table
