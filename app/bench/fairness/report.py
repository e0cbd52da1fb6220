"""What was measured, as a table beside the goals."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING

from rich.table import Table

from app.bench.fairness.measures import (
    bound,
    handovers,
    idle_times,
    jain,
    largest_difference,
    lengths,
    served,
    waits,
)
from app.bench.fairness.parts import EQUALS, LIGHT, RETURNING, RETURNS, WEIGHTED
from app.bench.fairness.people import MOST_SEATS, SEATS, TIME_SCALE
from app.bench.load import percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.bench.fairness.ledger import Ledger
    from app.bench.fairness.parts import Results
    from app.bench.fairness.people import Person

JAIN_SECONDS = 60
"""Of the simulated server."""


def table_of(results: Sequence[Results]) -> Table:
    """One column for each way of giving out seats."""
    first = next(result.equals for result in results if result.equals is not None)
    table = Table(
        title="How a model with 4 seats is shared",
        caption=f"One second here is {TIME_SCALE} s of the model's; each part was measured for"
        f" {first.seconds * TIME_SCALE:.0f} s of the model's. Waits are in the model's seconds,"
        " milliseconds those of here.",
    )
    table.add_column("")
    for result in results:
        table.add_column(result.name, justify="right")
    table.add_column("goal", justify="right")

    def row(name: str, value: Callable[[Results], str], goal: str = "") -> None:
        table.add_row(name, *(value(result) for result in results), goal)

    row("calls answered a second, equal weights", _rate)
    row("largest difference of cost / weight, equal", _difference_of_equals, _at_most(EQUALS))
    row("the same, weights 1:2:4", _difference_of_weighted, _at_most(WEIGHTED))
    row("Jain's index in 60 s, mean (least), equal", _jain_of_equals, "≥ 0.99")
    row("the same, weights 1:2:4", _jain_of_weighted, "≥ 0.98")
    row("share of one who returns", _returning_share, "0.25 ± 5%")
    table.add_section()
    for calls in results[0].floods:
        for name, value, goal in (
            ("light user's wait p50 / p99, s", _light_waits, ""),
            ("p99 wait / p99 call", _light_ratio, "≤ 1.5"),
        ):
            row(f"{calls:,} wait: {name}", _with_flood(value, calls), goal)
    table.add_section()
    row("seat time unused with somebody eligible", _idle_share)
    row("from a call's end to the next one, p50 / p99, ms", _handovers)
    row("of that a notification, p50 / p99, ms", _hints)
    row("looks that found it so in the database", _looks, "0")
    return table


def faults_in(results: Sequence[Results]) -> list[str]:
    """What must not be, however fast the machine is."""
    faults = []
    for result in results:
        if result.most_seats != MOST_SEATS:
            continue  # not ours
        for ledger, people in ((result.equals, EQUALS), (result.weighted, WEIGHTED)):
            if ledger is not None:
                largest = largest_difference(people, ledger.calls, result.most_seats)
                if largest > bound(people):
                    faults.append(f"{result.name}: {largest:,.0f} is beyond {bound(people):,.0f}.")
        if found := sum(ledger.idle_samples for ledger in result.ledgers):
            faults.append(f"{result.name}: a seat was free {found} times, with somebody eligible.")
    return faults


def _at_most(people: Sequence[Person]) -> str:
    return f"≤ {bound(people):,.0f}"


def _rate(result: Results) -> str:
    return (
        ""
        if result.equals is None
        else f"{len(lengths(result.equals)) / result.equals.seconds:.0f}"
    )


def _difference_of_equals(result: Results) -> str:
    return _difference(result.equals, EQUALS, result.most_seats)


def _difference_of_weighted(result: Results) -> str:
    return _difference(result.weighted, WEIGHTED, result.most_seats)


def _difference(ledger: Ledger | None, people: Sequence[Person], most_seats: int) -> str:
    return "" if ledger is None else f"{largest_difference(people, ledger.calls, most_seats):,.0f}"


def _jain_of_equals(result: Results) -> str:
    return _jain(result.equals, EQUALS)


def _jain_of_weighted(result: Results) -> str:
    return _jain(result.weighted, WEIGHTED)


def _jain(ledger: Ledger | None, people: Sequence[Person]) -> str:
    if ledger is None:
        return ""
    found = jain(people, ledger, JAIN_SECONDS / TIME_SCALE)
    return f"{mean(found):.3f} ({min(found):.3f})"


def _returning_share(result: Results) -> str:
    ledger = result.returning
    if ledger is None:
        return ""
    back = ledger.began + RETURNING[RETURNS].comes_after * ledger.seconds
    shares = [served(ledger.calls, each, back, ledger.ended) for each in range(len(RETURNING))]
    return f"{shares[RETURNS] / max(sum(shares), 1):.3f}"


def _with_flood(value: Callable[[Ledger], str], calls: int) -> Callable[[Results], str]:
    def of(result: Results) -> str:
        return value(result.floods[calls]) if calls in result.floods else ""

    return of


def light_waits(ledger: Ledger) -> tuple[float, float]:
    """The light user's waits, p50 and p99, in seconds of the bench."""
    waited = waits(ledger, LIGHT) or [0.0]
    return percentile([*waited, waited[-1]], 50), percentile([*waited, waited[-1]], 99)


def _light_waits(ledger: Ledger) -> str:
    p50, p99 = light_waits(ledger)
    # Whoever has not been served to the end waits for longer than is known.
    at_least = "> " if max(waits(ledger, LIGHT), default=0) > 0.9 * ledger.seconds else ""
    return f"{p50 * TIME_SCALE:.1f} / {at_least}{p99 * TIME_SCALE:.1f}"


def _light_ratio(ledger: Ledger) -> str:
    return f"{light_waits(ledger)[1] / percentile(lengths(ledger), 99):.2f}"


def _idle_share(result: Results) -> str:
    idle = sum(
        seconds * seats
        for ledger in result.ledgers
        for seconds, seats in idle_times(ledger, ledger.people, SEATS, result.most_seats)
    )
    return f"{idle / SEATS / sum(ledger.seconds for ledger in result.ledgers):.1%}"


def _handovers(result: Results) -> str:
    return _milliseconds(
        [
            seconds
            for ledger in result.ledgers
            for seconds in handovers(ledger, ledger.people, result.most_seats)
        ]
    )


def _hints(result: Results) -> str:
    return _milliseconds([hint for ledger in result.ledgers for hint in ledger.hints])


def _milliseconds(seconds: list[float]) -> str:
    if len(seconds) < 2:  # noqa: PLR2004 - or there is no percentile
        return ""
    p50, p99 = (percentile(seconds, percent) * 1000 for percent in (50, 99))
    return f"{p50:.1f} / {p99:.1f}"


def _looks(result: Results) -> str:
    looks = sum(ledger.samples for ledger in result.ledgers)
    found = sum(ledger.idle_samples for ledger in result.ledgers)
    return f"{found} of {looks}" if looks else ""
