"""What was measured, drawn. Matplotlib is what the extra `dev` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from app.bench.fairness.measures import bound, jain, largest_difference
from app.bench.fairness.parts import EQUALS, WEIGHTED
from app.bench.fairness.people import TIME_SCALE
from app.bench.fairness.report import JAIN_SECONDS, light_waits

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from app.bench.fairness.ledger import Ledger
    from app.bench.fairness.parts import Results
    from app.bench.fairness.people import Person

_COLOURS = ("#1f77b4", "#17becf", "#d62728", "#ff7f0e")
_STYLES = ("-", "--", ":", "-.")


def draw(results: Sequence[Results], folder: Path) -> list[Path]:
    """Write ``fairness.png`` and ``fairness.svg`` into a folder, and return where they are."""
    with mpl.rc_context({"svg.hashsalt": "fairness", "font.size": 9}):
        figure = Figure(figsize=(13, 9), layout="constrained")
        places = figure.subplots(2, 2).flatten()
        _draw_use(places[0], results)
        _draw_differences(places[1], results)
        _draw_jain(places[2], results)
        _draw_waits(places[3], results)
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "fairness.png", folder / "fairness.svg"]
        for file in files:
            figure.savefig(file, dpi=120)
    return files


def _draw_use(place: Axes, results: Sequence[Results]) -> None:
    place.set_title("Cost of what was answered, by weight 1:2:4")
    place.set_xlabel("seconds of the model's")
    place.set_ylabel("tokens / weight")
    for result, style in zip(results, _STYLES, strict=False):
        if result.weighted is None:
            continue
        for number, person in enumerate(WEIGHTED):
            times, costs = _growth(result.weighted, number, person)
            label = f"{result.name}: {person.name}"
            place.plot(times, costs, style, color=_COLOURS[number], linewidth=1, label=label)
    place.legend(fontsize=7)


def _growth(ledger: Ledger, number: int, person: Person) -> tuple[list[float], list[float]]:
    times, costs, cost = [0.0], [0.0], 0.0
    answered = [call for call in ledger.calls if call.person == number and call.ended is not None]
    for call in sorted(answered, key=lambda each: each.ended or 0):
        if call.ended is not None and ledger.began <= call.ended <= ledger.ended:
            cost += call.cost / person.weight
            times.append((call.ended - ledger.began) * TIME_SCALE)
            costs.append(cost)
    return times, costs


def _draw_differences(place: Axes, results: Sequence[Results]) -> None:
    place.set_title("Largest difference of two people, both eligible")
    place.set_ylabel("tokens / weight")
    names, heights, colours = [], [], []
    for result, colour in zip(results, _COLOURS, strict=False):
        for what, ledger, people in (
            ("equal", result.equals, EQUALS),
            ("1:2:4", result.weighted, WEIGHTED),
        ):
            if ledger is not None:
                names.append(f"{result.name}\n{what}")
                heights.append(largest_difference(people, ledger.calls, result.most_seats))
                colours.append(colour)
    place.bar(names, heights, color=colours)
    for people, what, style in ((EQUALS, "equal", "-"), (WEIGHTED, "1:2:4", "--")):
        place.axhline(bound(people), linestyle=style, color="black", label=f"bound, {what}")
    place.tick_params(axis="x", labelrotation=30)
    place.legend()


def _draw_jain(place: Axes, results: Sequence[Results]) -> None:
    place.set_title("Jain's index in windows of 60 s")
    place.set_xlabel("window")
    place.xaxis.set_major_locator(MaxNLocator(integer=True))
    for result, colour in zip(results, _COLOURS, strict=False):
        for what, ledger, people, style in (
            ("equal", result.equals, EQUALS, "o-"),
            ("1:2:4", result.weighted, WEIGHTED, "s--"),
        ):
            if ledger is not None:
                found = jain(people, ledger, JAIN_SECONDS / TIME_SCALE)
                label = f"{result.name}, {what}"
                place.plot(range(1, len(found) + 1), found, style, color=colour, label=label)
    place.axhline(0.99, color="black", linewidth=0.8)
    place.set_ylim(0.2, 1.02)
    place.legend(fontsize=7)


def _draw_waits(place: Axes, results: Sequence[Results]) -> None:
    place.set_title("A light user's wait, p99")
    place.set_xlabel("calls of another user that wait")
    place.set_ylabel("seconds of the model's")
    for result, colour in zip(results, _COLOURS, strict=False):
        if result.floods:
            waited = [light_waits(ledger)[1] * TIME_SCALE for ledger in result.floods.values()]
            place.plot(list(result.floods), waited, "o-", color=colour, label=result.name)
    place.set_xscale("log")
    place.set_yscale("log")
    place.legend()
