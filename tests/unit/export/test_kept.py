"""What is kept, by kind."""

from __future__ import annotations

from app.export.kept import KINDS, KindSize, by_kind
from tenancy.export.rows import TableSize


class TestKinds:
    def test_are_their_tables_together(self) -> None:
        sizes = [
            TableSize("checkpoints", 2, 100, True),
            TableSize("checkpoint_blobs", 3, 1000, False),
            TableSize("threads", 1, 10, True),
        ]
        found = {each.kind: each for each in by_kind(sizes)}
        assert found["checkpoints"] == KindSize("checkpoints", 5, 1100, False)
        assert found["conversations"] == KindSize("conversations", 1, 10, True)
        assert found["memories"] == KindSize("memories", 0, 0, True)
        assert list(found) == list(KINDS)

    def test_have_one_for_tables_that_belong_to_none(self) -> None:
        assert by_kind([TableSize("new", 1, 2, True)])[-1] == KindSize("other", 1, 2, True)
