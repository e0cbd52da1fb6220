"""What LangGraph's saver would write, collected as rows for one call of ``write_checkpoints``.

The library's upserts are recognised by their SQL and never sent: the database function does
the same with the user in every key, all rows of a batch and the fence's guard in one round
trip. (Sent one by one through a pipeline, they cost half of the worker's throughput.)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.postgres import base

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from psycopg.types.json import Jsonb

Row = tuple[Any, ...]

_KNOWN_COLUMNS = {
    base.UPSERT_CHECKPOINTS_SQL: "checkpoints (thread_id, checkpoint_ns, checkpoint_id,"
    " parent_checkpoint_id, checkpoint, metadata)",
    base.UPSERT_CHECKPOINT_BLOBS_SQL: "checkpoint_blobs (thread_id, checkpoint_ns, channel,"
    " version, type, blob)",
    base.UPSERT_CHECKPOINT_WRITES_SQL: "checkpoint_writes (thread_id, checkpoint_ns,"
    " checkpoint_id, task_id, task_path, idx, channel, type, blob)",
    base.INSERT_CHECKPOINT_WRITES_SQL: "checkpoint_writes (thread_id, checkpoint_ns,"
    " checkpoint_id, task_id, task_path, idx, channel, type, blob)",
}
"""What ``tenant.write_checkpoints`` was written for; another version of the library may differ."""

for _sql, _columns_of in _KNOWN_COLUMNS.items():
    if f"INSERT INTO {_columns_of}" not in _sql:
        raise ImportError("langgraph-checkpoint-postgres has changed its upserts")


@dataclass(slots=True)
class CheckpointBatch:
    """Rows to write, each kind keyed by what makes it unique within its thread.

    A later row replaces an earlier one of the same key where the library would update it, and
    is dropped where the library would leave the first.
    """

    threads: set[str] = field(default_factory=set)
    checkpoints: dict[tuple[str, str], Row] = field(default_factory=dict)
    blobs: dict[Row, Row] = field(default_factory=dict)
    writes: dict[Row, Row] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.checkpoints or self.blobs or self.writes)

    def add(self, sql: str, row: Sequence[Any]) -> None:
        """Add one row that the library would write with ``sql``.

        Raises:
            RuntimeError: the library has a statement that this does not know.
        """
        self.threads.add(str(row[0]))
        if sql == base.UPSERT_CHECKPOINTS_SQL:
            _, ns, checkpoint_id, parent, checkpoint, metadata = row
            values = (ns, checkpoint_id, parent, _text(checkpoint), _text(metadata))
            self.checkpoints[ns, checkpoint_id] = values
        elif sql == base.UPSERT_CHECKPOINT_BLOBS_SQL:
            self.blobs.setdefault(tuple(row[1:4]), tuple(row[1:]))
        elif sql == base.UPSERT_CHECKPOINT_WRITES_SQL:
            self.writes[_write_key(row)] = (*row[1:], True)
        elif sql == base.INSERT_CHECKPOINT_WRITES_SQL:
            self.writes.setdefault(_write_key(row), (*row[1:], False))
        else:
            raise RuntimeError("langgraph-checkpoint-postgres has a new statement")

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of ``tenant.write_checkpoints`` after user, run and fence.

        Raises:
            RuntimeError: the rows are of several threads; a run has one.
        """
        if len(self.threads) != 1:
            raise RuntimeError("a run writes checkpoints of its own thread only")
        (thread,) = self.threads
        return (
            thread,
            *_columns(self.checkpoints.values(), 5),
            *_columns(self.blobs.values(), 5),
            *_columns(self.writes.values(), 9),
        )


class BatchCursor:
    """Stands where the library expects a cursor to write with; keeps the rows of one call.

    They go into a batch together, at the end: the library serialises in a thread meanwhile, and
    the batch that stood at the beginning may have been sent by then.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[str, Sequence[Any]]] = []

    async def execute(self, sql: str, row: Sequence[Any]) -> None:
        """Collect one row."""
        self._rows.append((sql, row))

    async def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Collect several rows."""
        self._rows += [(sql, row) for row in rows]

    def threads(self) -> set[str]:
        """The threads that the rows are of."""
        return {str(row[0]) for _, row in self._rows}

    def hand_over(self, batch: CheckpointBatch) -> None:
        """Put what was collected into a batch."""
        for sql, row in self._rows:
            batch.add(sql, row)


def _write_key(row: Sequence[Any]) -> Row:
    """Namespace, checkpoint, task, index."""
    return (row[1], row[2], row[3], row[5])


def _columns(rows: Iterable[Row], width: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(width)]


def _text(value: Jsonb) -> str:
    return json.dumps(value.obj)
