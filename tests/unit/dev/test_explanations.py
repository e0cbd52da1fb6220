"""What a person is told when PostgreSQL does not start."""

from __future__ import annotations

from app.dev.postgres.cluster import explain


class TestExplain:
    def test_a_full_disk_is_called_that_and_nothing_is_to_be_deleted_for_it(self) -> None:
        said = explain("FATAL:  could not write file: No space left on device", "it is broken.")
        assert said == "PostgreSQL: the disk is full. Make room and start again."

    def test_anything_else_comes_with_the_lines_that_matter(self) -> None:
        output = "LOG:  starting\nPANIC:  could not locate a valid checkpoint\nLOG:  shutting down"
        said = explain(output, "it is broken.")
        assert said == "PostgreSQL: it is broken.\nPANIC:  could not locate a valid checkpoint"
