"""What was done and what was found, for a person to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from app.bench.chaos.promises import Violation

_EXAMPLES = 10


@dataclass(frozen=True, slots=True)
class Report:
    """A seed, the faults that were injected, how the runs ended, and what was broken."""

    seed: int
    faults: Counter[str]
    runs: Mapping[str, int]
    violations: Counter[Violation]

    @property
    def is_clean(self) -> bool:
        """Whether nothing was broken."""
        return not self.violations

    def print(self, console: Console) -> None:
        """Print the tables, and some of what was broken."""
        console.print(_table(f"Faults injected (seed {self.seed})", self.faults))
        console.print(_table("Runs accepted", self.runs))
        rules: dict[str, int] = {}
        for violation, times in self.violations.items():
            rules[violation.rule] = rules.get(violation.rule, 0) + times
        console.print(_table("Violations", rules))
        for line in self._examples():
            console.print(line, markup=False)

    def _examples(self) -> Iterator[str]:
        shown: dict[str, int] = {}
        for violation in self.violations:
            shown[violation.rule] = shown.get(violation.rule, 0) + 1
            if shown[violation.rule] <= _EXAMPLES:
                yield f"- {violation}"


def _table(title: str, counts: Mapping[str, int]) -> Table:
    table = Table(title=title, show_header=False, title_justify="left")
    table.add_column(min_width=36)
    table.add_column(justify="right", min_width=6)
    for name, number in sorted(counts.items()):
        table.add_row(name, str(number))
    table.add_section()
    table.add_row("in all", str(sum(counts.values())))
    return table
