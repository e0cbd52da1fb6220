"""Executes claimed runs: takes each up, carries it out, and settles it or leaves it to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.logging import tenant_reference
from app.request_id import work_for
from app.runs.events import Event, settle_run
from app.runs.tail import run_key
from app.runs.wire import to_json
from app.telemetry.spans import attempt_span
from app.worker.attempt import Attempt
from app.worker.begin import RunUnreadable, load_run
from app.worker.outcome import DRAINED
from tenancy.database.engine import DatabaseUnavailable
from tenancy.run_states import RunState

if TYPE_CHECKING:
    from uuid import UUID

    from app.stopping import RunStop
    from app.worker.metrics import MeasuredAttempts
    from app.worker.services import ExecutionServices
    from tenancy.principal import ClaimedRun


class RunNotBegun(DatabaseUnavailable):
    """The database did not even take the beginning of an attempt."""


class RunExecutor:
    """Executes runs under one worker's claims."""

    def __init__(
        self, worker_id: UUID, services: ExecutionServices, attempts: MeasuredAttempts
    ) -> None:
        self._worker_id = worker_id
        self._attempts = attempts
        self._services = services

    async def execute(self, run: ClaimedRun, stop: RunStop) -> bool:
        """Execute a run until it is settled, or ``stop`` says otherwise.

        False: it was stopped between two steps for somebody else to go on with, and is still this
        worker's to give back.

        Raises:
            LeaseLost: it is no longer ours; nothing was written.
            RunNotBegun: Postgres did not take the attempt's beginning.
            DatabaseUnavailable: Postgres stayed away. That is no fault of the run's: it is not
                settled, and whoever claimed it gives it back.
        """
        try:
            loaded = await load_run(self._services.database, run, self._worker_id)
        except DatabaseUnavailable as error:
            raise RunNotBegun(sqlstate=error.sqlstate) from error
        except RunUnreadable as error:
            await self._refuse(run, error)
            return True
        work_for(loaded.request_id)
        self._services.announcer.run_changed(run_key(run.user_id, run.run_id))
        with attempt_span(loaded.request_id) as facts:
            facts.say({"stoa.run_id": str(run.run_id), "stoa.fence": run.fence})
            facts.say({"stoa.tenant": tenant_reference(run.user_id), "stoa.graph": loaded.graph_id})
            async with Attempt(self._services, loaded, stop) as attempt:
                outcome = await attempt.carry_out()
                facts.say({"stoa.outcome": outcome.state.value, "stoa.code": outcome.code})
                self._attempts.ended(outcome.state.value, outcome.code)
                if outcome.code is not None:
                    facts.fail()
                if outcome is DRAINED:
                    await attempt.give_up()
                    return False
                await attempt.settle(outcome)
            return True

    async def _refuse(self, run: ClaimedRun, error: RunUnreadable) -> None:
        """End a run that would fail in each attempt, before it can be executed."""
        said = {"error": error.code, "message": str(error)}
        await settle_run(
            self._services.database,
            run,
            RunState.ERROR,
            error.next_seq,
            [Event("error", to_json(said))],
            error_code=error.code,
            error_message=str(error),
        )
        self._services.announcer.run_changed(run_key(run.user_id, run.run_id))
