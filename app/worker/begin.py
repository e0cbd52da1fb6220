"""What an attempt begins with: the claimed run, and where in its graph it starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import CheckpointMetadata
from langgraph.types import StateSnapshot

from app.runs.resuming import Resume
from app.runs.runs import RunRequest
from tenancy.errors import StoaError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Interrupt, PregelTask

    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import ClaimedRun

_LANGGRAPHS_OWN = frozenset(CheckpointMetadata.__annotations__)
_BEGIN_ATTEMPT = "SELECT * FROM tenant.begin_attempt($1, $2, $3, $4)"


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """What a claimed run needs to be executed."""

    run: ClaimedRun
    thread_id: UUID
    graph_id: str
    request: RunRequest
    metadata: dict[str, Any]
    next_seq: int
    attempts_spent: int
    active_seconds: float
    steps: int
    """Steps that earlier attempts have taken."""
    cancel_requested: bool
    follows_failure: bool
    """Whether the run that wrote the thread's newest state may have left something undone."""
    answers: Mapping[str, Any]
    """What a person answered last to what an operator's graph asked, by the interrupts' ids."""
    decisions: Sequence[Mapping[str, Any]]
    """How each call stands that the built-in graph has asked about and that is not open any more;
    see ``app.worker.decisions``."""
    request_id: str | None
    """Of the request that made it."""
    head: Mapping[str, Any]
    """The thread's newest checkpoint, read with the run; without an id where there is none."""

    @property
    def is_first(self) -> bool:
        """Whether no attempt was made before: one that was given back is told by the fence."""
        return self.run.is_first_claim


class RunUnreadable(StoaError):
    """A run's row holds what this version cannot read: another one wrote it."""

    code = "run_unreadable"
    message = "This run was made by another version of the service. Send it again."

    def __init__(self, next_seq: int) -> None:
        super().__init__()
        self.next_seq = next_seq


async def load_run(database: TenantDatabase, run: ClaimedRun, worker_id: UUID) -> LoadedRun:
    """Take up a claimed run; its ``metadata`` event is committed with it.

    Raises:
        LeaseLost: it is no longer this worker's.
        DatabaseUnavailable: Postgres is away.
        RunUnreadable: nobody of this version can execute it.
    """
    claim = (run.run_id, run.fence, worker_id)
    (row,) = await database.call(run, _BEGIN_ATTEMPT, *claim)
    try:
        request = RunRequest.from_json(row["request"])
        resume = Resume.from_json(row["resume"]) if row["resume"] else None
    except (TypeError, KeyError) as error:
        raise RunUnreadable(row["next_seq"]) from error
    return LoadedRun(
        run=run,
        thread_id=row["run_thread_id"],
        graph_id=row["graph_id"],
        request=request if resume is None else resume.extended(request),
        metadata=row["run_metadata"],
        next_seq=row["next_seq"],
        attempts_spent=row["attempts_spent"],
        active_seconds=row["active_seconds"],
        steps=row["steps"],
        cancel_requested=row["cancel_requested"],
        follows_failure=row["follows_failure"],
        answers={} if resume is None else resume.answers,
        decisions=row["approvals"] or (),
        request_id=row["request_id"],
        head=row,
    )


def thread_config(loaded: LoadedRun) -> RunnableConfig:
    """The thread's newest state, as something of this run's.

    The run's id in the metadata is what LangGraph knows a resumed run by: a checkpoint that bears
    it is gone on from, instead of applying the input a second time.
    """
    return {
        "configurable": {"thread_id": str(loaded.thread_id), "checkpoint_ns": ""},
        "metadata": {"run_id": str(loaded.run.run_id)},
    }


def run_config(
    loaded: LoadedRun, recursion_limit: int, listener: BaseCallbackHandler
) -> RunnableConfig:
    """The configuration that the graph is run with; the listener hears of all it calls."""
    wanted = loaded.request.config
    configurable = {
        **_clients(wanted.get("configurable", {})),
        "thread_id": str(loaded.thread_id),
        "checkpoint_ns": "",
    }
    if loaded.request.checkpoint_id is not None:
        configurable["checkpoint_id"] = loaded.request.checkpoint_id
    return {
        "configurable": configurable,
        "tags": list(wanted.get("tags", ())),
        "recursion_limit": recursion_limit,
        "callbacks": [listener],
        "metadata": {
            **_clients(loaded.metadata),
            "graph_id": loaded.graph_id,
            "run_id": str(loaded.run.run_id),
        },
    }


def _clients(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """What a client has chosen, but for what LangGraph keeps in a checkpoint for itself.

    It takes a client's value for its own, and fails on it when it reads the state again.
    """
    return {key: value for key, value in chosen.items() if key not in _LANGGRAPHS_OWN}


def go_on_from(config: RunnableConfig, head: StateSnapshot, *, has_waited: bool) -> bool:
    """Let a later attempt go on where an earlier one stopped; say whether one has written anything.

    It passes the original input again, which LangGraph does not apply twice. But once the thread's
    head is the run's own, the checkpoint that the client chose must go, or a second branch would
    begin there. So it must where the run ``has_waited``, at a head that may be another run's.
    """
    is_own: bool = (head.metadata or {}).get("run_id") == config["metadata"]["run_id"]
    if is_own or has_waited:
        config["configurable"].pop("checkpoint_id", None)
    return is_own or has_waited


def answers_that_are_due(answers: Mapping[str, Any], head: StateSnapshot) -> dict[str, Any]:
    """Those of a person's answers whose questions are still open; ``head`` has subgraphs in it.

    The others were taken by an attempt that came to its end later. Given again, they would answer
    what the same node asked next.
    """
    asked = {interrupt.id for task in head.tasks for interrupt in _asked_in(task)}
    return {id_: answer for id_, answer in answers.items() if id_ in asked}


def _asked_in(task: PregelTask) -> list[Interrupt]:
    """What a task waits for: a graph inside it knows that first."""
    inner = task.state.tasks if isinstance(task.state, StateSnapshot) else ()
    return [asked for each in inner for asked in _asked_in(each)] or list(task.interrupts)
