"""What came of a call, as the ledger keeps it and the model is told it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from app.tools.outcomes import Outcome

if TYPE_CHECKING:
    from app.tools.mcp.results import Content
    from app.tools.waiting import InDoubt

TIMED_OUT = "The tool did not answer in time."
LOST = "The connection to the tool's server was lost before it answered."
OTHER = "Another call was made in the place of this one. It was not made."
CHANGED = "The connection to the tool's server was changed meanwhile. The call was not made."
DISCONNECTED = "The person does not use this tool's server any more. The call was not made."
UNRECORDED = "The call could not be recorded, so it was not made. Try again later."
TELLING_QUESTION = "The tool's server asked something that it must not. The call was ended."
HAPPENED = "The result of this call was lost. The person says that the call had its effect."
LEFT_OUT = (
    "The result of this call was lost, so it may have had an effect. The person does not want it"
    " to be made again."
)
THEY_SAY = "They say: "


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a call."""

    content: Content
    outcome: Outcome = Outcome.ERROR
    again: bool = False
    """Whether another try does no harm and may come to more."""
    doubt: InDoubt | None = None
    """What the person is to be asked, unless another try comes to more: nobody knows what came
    of it."""

    def as_json(self) -> dict[str, Any]:
        """As the ledger keeps it."""
        return {"content": self.content, "outcome": self.outcome.value}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """As the ledger has kept it: what the server answered, or what the person said instead."""
        if "decided" not in kept:
            return cls(kept["content"], Outcome(kept["outcome"]))
        reason = f"\n\n{THEY_SAY}{kept['reason']}" if kept["reason"] else ""
        if kept["decided"] == "happened":
            return cls(HAPPENED + reason, Outcome.OK)
        return cls(LEFT_OUT + reason, Outcome.LOST)
