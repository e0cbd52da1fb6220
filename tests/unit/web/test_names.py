"""The browser client has a name for whatever the service tells people is kept or was done."""

from __future__ import annotations

import re
from pathlib import Path

from app.export.kept import KINDS, OTHER
from app.settings import Settings
from app.sharing import retention_times

ROOT = Path(__file__).parents[3]
CATALOGUE = (ROOT / "app/web/src/messages/en/data.ts").read_text(encoding="utf-8")
ACTS = (
    re.compile(r"tenant\.audit\(\s*[^,]+,([^,]+),([^,]+),"),
    re.compile(r"tenant\.audit_act\(\s*[^,]+,[^,]+,([^,]+),"),
    re.compile(r"tenant\.audit_approval\([^,]+,([^,]+),"),
)
"""Where something is put on record; the last group is what was done."""
DEEDS = re.compile(r"\.did\(act, \"([a-z_]+)\"")
"""The same, of what operators do that is no one function of the database's."""


def named(group: str) -> set[str]:
    """The keys of a group of texts that has no groups below it."""
    (texts,) = re.findall(rf"\b{group}: {{\n(.*?)\n\s*}},", CATALOGUE, re.DOTALL)
    return set(re.findall(r"^\s*(\w+):", texts, re.MULTILINE))


def put_on_record() -> set[str]:
    """All that the service puts on record, however its SQL decides."""
    sql = "\n".join(each.read_text() for each in sorted((ROOT / "tenancy/sql").glob("*.sql")))
    code = re.sub(r"--.*", "", sql)
    words = [match[match.lastindex or 0] for act in ACTS for match in act.finditer(code)]
    python = "\n".join(each.read_text() for each in sorted((ROOT / "app").rglob("*.py")))
    return {*DEEDS.findall(python)} | {
        word
        for said in words
        for word in re.findall(r"(?:^|THEN|ELSE)\s*'([a-z_]+)'", said.strip())
    }


class TestNames:
    def test_are_there_of_each_act_on_record_and_of_no_other(self) -> None:
        assert named("action") == put_on_record()

    def test_are_there_of_each_kind_of_data(self) -> None:
        settings = Settings.model_construct()
        kinds = {*KINDS, OTHER, *retention_times(settings)}
        assert named("kinds") == kinds
