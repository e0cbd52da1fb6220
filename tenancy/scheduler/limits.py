"""What a person may use: the limits by name, and which are in force.

Stored sparsely, as a plan's and as a person's own: what is absent is the plan's, then the plan
``default``'s, then what the service's settings say (``tenant.limits_of``). None is no limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tenancy.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

LimitName = Literal[
    "weight",
    "seats",
    "running",
    "queued",
    "steps_per_run",
    "tokens_per_day",
    "tokens_per_month",
    "requests_per_minute",
    "threads",
    "memory_bytes",
    "streams",
]
DEFAULT_PLAN = "default"
"""The plan of everybody who has no other; it need not exist."""


@dataclass(frozen=True, slots=True)
class LimitRule:
    """What a limit is, and which values it may have."""

    name: LimitName
    meaning: str
    unit: str
    least: float
    most: float
    whole: bool = True
    may_be_unlimited: bool = True

    def check(self, value: object) -> None:
        """Refuse what this limit cannot be.

        Raises:
            InvalidInput: says which values it may have.
        """
        if value is None and self.may_be_unlimited:
            return
        kinds = (int,) if self.whole else (int, float)
        fits = (
            isinstance(value, kinds)
            and not isinstance(value, bool)
            # Compared as it is: an integer may be too large for a float.
            and self.least <= value <= self.most
        )
        if not fits:
            kind = "a whole number" if self.whole else "a number"
            none = ", or null for no limit" if self.may_be_unlimited else ""
            raise InvalidInput(
                f"`{self.name}` is {kind} from {self.least:g} to {self.most:g}{none}."
            )


_MOST = 2**31 - 1
RULES: Mapping[str, LimitRule] = {
    rule.name: rule
    for rule in (
        LimitRule(
            "weight",
            "Share of the model, beside others' weights.",
            "share",
            0.01,
            1000,
            whole=False,
            may_be_unlimited=False,
        ),
        LimitRule("seats", "Model calls in flight at once, per model.", "calls", 0, 10_000),
        LimitRule("running", "Runs in flight at once; 0 suspends.", "runs", 0, 10_000),
        LimitRule("queued", "Runs that wait.", "runs", 0, 1_000_000),
        LimitRule("steps_per_run", "Steps of a run.", "steps", 1, 10_000, may_be_unlimited=False),
        LimitRule("tokens_per_day", "Tokens in a day (UTC).", "tokens", 0, 10**15),
        LimitRule("tokens_per_month", "Tokens in a month (UTC).", "tokens", 0, 10**15),
        LimitRule("requests_per_minute", "Requests in a minute.", "requests", 1, 1_000_000),
        LimitRule("threads", "Threads kept.", "threads", 0, _MOST),
        LimitRule("memory_bytes", "Bytes kept in the store.", "bytes", 0, 10**15),
        LimitRule(
            "streams",
            "Streams open at once, per web process.",
            "streams",
            1,
            10_000,
            may_be_unlimited=False,
        ),
    )
}
"""Every limit there is, by its name."""

Limits = dict[str, float | int | None]
"""Values by limit names; sparse where stored, whole where in force."""


def check_limits(limits: Mapping[str, object]) -> Limits:
    """Return limits that may be stored.

    Raises:
        InvalidInput: there is no such limit, or it cannot have that value.
    """
    checked: Limits = {}
    for name, value in limits.items():
        if name not in RULES:
            raise InvalidInput(f"There is no limit of that name. There are: {', '.join(RULES)}.")
        RULES[name].check(value)
        checked[name] = value  # type: ignore[assignment] # as the rule says
    return checked
