"""What must hold of each stream: the same from every web process, and what was seen of it live."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.bench.chaos.promises import Promise, Promises, Violation
from app.bench.chaos.stream import Reading

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import httpx

_AT_ONCE = 8


async def broken_logs(
    http: httpx.AsyncClient,
    origins: Sequence[str],
    headers: Mapping[str, Mapping[str, str]],
    promises: Promises,
    statuses: Mapping[str, str],
    rolled_back: Collection[str],
) -> list[Violation]:
    """Read every promised run's stream again, whole, from every web process.

    Args:
        http: a client.
        origins: the web processes.
        headers: what says who is asking, by the person's name.
        promises: the runs.
        statuses: how each run ended, in LangGraph's words, by its id.
        rolled_back: the runs of whose states nothing may be left.
    """
    found: list[Violation] = []
    free = asyncio.Semaphore(_AT_ONCE)

    async def check(promise: Promise) -> None:
        async with free:
            again = [
                await _read(http, f"{origin}{promise.location}/stream", headers, promise, found)
                for origin in origins
            ]
        found.extend(_differences(promise, again, statuses[promise.run_id]))
        if promise.run_id not in rolled_back:
            found.extend(_losses(promise, again[0]))

    async with asyncio.TaskGroup() as group:
        for promise in promises.runs.values():
            if promise.run_id in statuses:
                group.create_task(check(promise))
    return found


async def _read(
    http: httpx.AsyncClient,
    url: str,
    headers: Mapping[str, Mapping[str, str]],
    promise: Promise,
    found: list[Violation],
) -> Promise:
    fresh = Promise(promise.person, promise.thread_id, promise.run_id, promise.text)
    seen = Promises()
    async with http.stream("GET", url, headers=headers[promise.person]) as response:
        response.raise_for_status()
        await Reading(fresh, seen).read(response)
    found.extend(seen.broken)
    return fresh


def _differences(promise: Promise, again: Sequence[Promise], status: str) -> Iterator[Violation]:
    where = f"run {promise.run_id}"
    if any((each.frames, each.gaps) != (again[0].frames, again[0].gaps) for each in again):
        yield Violation("web processes tell a stream differently", where)
    told = promise.told.union(*(each.told for each in again))
    if told - {status}:
        yield Violation("an outcome changed after it was told", f"{where}: {told}, now {status}")


def _losses(promise: Promise, whole: Promise) -> Iterator[Violation]:
    """What is not there any more though nothing was taken back."""
    where = f"run {promise.run_id}"
    if gaps := promise.gaps | whole.gaps:
        yield Violation("a stream has a gap", f"{where}, at {sorted(gaps)}")
    if differing := [n for n, frame in promise.frames.items() if whole.frames.get(n) != frame]:
        yield Violation("a stream was not what the log says", f"{where}, events {differing}")
