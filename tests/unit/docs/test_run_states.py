"""The drawing of a run's life is what the code does."""

from __future__ import annotations

from tenancy.run_states import state_diagram
from tests.unit.docs.pages import DOCS

BEGIN = "<!-- Made by: .venv/bin/python -m tenancy.run_states -->\n"
END = "\n<!-- Made until here. -->\n"


class TestThePageOfStates:
    def test_draws_what_the_code_allows(self) -> None:
        page = (DOCS / "run-states.md").read_text(encoding="utf-8")
        _, _, rest = page.partition(BEGIN)
        drawn, _, _ = rest.partition(END)
        assert drawn == state_diagram(), (
            "put what `.venv/bin/python -m tenancy.run_states` prints between the two comments"
            " of docs/run-states.md"
        )
