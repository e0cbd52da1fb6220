"""What a run's graph is configured with: the client's choices, and nothing in LangGraph's place."""

from __future__ import annotations

from uuid import uuid4

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langgraph.checkpoint.base import get_checkpoint_metadata

from app.runs.runs import RunRequest
from app.worker.begin import LoadedRun, run_config
from tenancy.principal import ClaimedRun, UserId


def loaded(metadata: dict[str, object], configurable: dict[str, object]) -> LoadedRun:
    """A run that was asked for with these."""
    return LoadedRun(
        run=ClaimedRun(UserId(uuid4()), uuid4(), 1),
        thread_id=uuid4(),
        graph_id="agent",
        request=RunRequest(config={"configurable": configurable}),
        metadata=metadata,
        next_seq=1,
        attempts_spent=0,
        active_seconds=0.0,
        steps=0,
        cancel_requested=False,
        follows_failure=False,
        answers={},
        decisions=(),
        request_id=None,
        head={},
    )


class TestWhatAClientPutsWithARun:
    @pytest.mark.parametrize("place", ["metadata", "configurable"])
    def test_stands_with_its_states_but_not_in_the_place_of_what_langgraph_keeps_there(
        self, place: str
    ) -> None:
        """It would count on with a client's number, and fail."""
        chosen: dict[str, object] = {"counters_since_delta_snapshot": 5, "colour": "blue"}
        run = loaded(*((chosen, {}) if place == "metadata" else ({}, chosen)))
        config = run_config(run, 25, BaseCallbackHandler())
        kept = get_checkpoint_metadata(config, {"source": "loop", "step": 1, "parents": {}})
        assert kept["colour"] == "blue"  # type: ignore[typeddict-item]
        assert "counters_since_delta_snapshot" not in kept
