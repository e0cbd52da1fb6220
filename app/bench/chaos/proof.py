"""The proof: everything that was promised, compared with everything there is."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.bench.chaos.conversations import Asked, broken_turns
from app.bench.chaos.logs import broken_logs
from app.bench.chaos.promises import Violation
from app.bench.chaos.rows import AFTERWARDS, RULES, broken_rules, stored_runs
from app.runs.states import wire_status
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import httpx
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.bench.chaos.client import Person
    from app.bench.chaos.promises import Promises

_LOOKS = 300
_LOOK_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Proof:
    """What is needed to look at everything.

    ``owner`` sees every row, ``http`` is a client and ``origins`` the web processes it can ask;
    ``people`` are all who were promised something, by name, and ``headers`` say who they are.
    """

    owner: AsyncEngine
    http: httpx.AsyncClient
    origins: Sequence[str]
    people: Mapping[str, Person]
    headers: Mapping[str, Mapping[str, str]]

    async def settled(self, promises: Promises) -> list[Violation]:
        """What is broken once no run is open any more; the web processes must be answering."""
        stored = await stored_runs(self.owner)
        states = {row.run_id: row.state for row in stored}
        threads: dict[str, list[Asked]] = defaultdict(list)
        for row in stored:
            threads[row.thread_id].append(Asked(row.run_id, row.text, row.state, row.rolled_back))
        owners = {promise.thread_id: promise.person for promise in promises.runs.values()}
        found = [*promises.broken, *_unkept(promises, states)]
        found += await broken_rules(self.owner, RULES)
        for thread_id, person in owners.items():
            messages = await self.people[person].messages(thread_id)
            found += broken_turns(thread_id, threads[thread_id], messages)
        statuses = {run_id: wire_status(RunState(state)) for run_id, state in states.items()}
        rolled_back = {row.run_id for row in stored if row.rolled_back}
        return found + await broken_logs(
            self.http, self.origins, self.headers, promises, statuses, rolled_back
        )

    async def ended(self) -> list[Violation]:
        """What is left though every process of the service has ended in order.

        Postgres notices only a moment later that somebody has gone.
        """
        for _ in range(_LOOKS):
            if not await broken_rules(self.owner, AFTERWARDS):
                return []
            await asyncio.sleep(_LOOK_EVERY)
        return await broken_rules(self.owner, AFTERWARDS)


def _unkept(promises: Promises, states: Mapping[str, str]) -> Iterator[Violation]:
    for promise in promises.runs.values():
        if promise.run_id not in states:
            yield Violation("an accepted run is gone", promise.run_id)
        elif promise.cancel_accepted and states[promise.run_id] != "cancelled":
            yield Violation(
                "a cancel was accepted and the run ended otherwise",
                f"{promise.run_id}: {states[promise.run_id]}",
            )
    for run_id in states.keys() - promises.runs.keys():
        yield Violation("a run exists that nobody was promised", run_id)
