"""A LangGraph checkpointer for what an owner changes about a thread's state, beside any run."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from tenancy.checkpoints.batch import BatchCursor, CheckpointBatch
from tenancy.checkpoints.saver import TenantReader

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenancy.checkpoints.pool import CheckpointPool
    from tenancy.database.tenant import TenantDatabase
    from tenancy.principal import Owner

_WRITE = f"SELECT tenant.write_state({', '.join(f'${n}' for n in range(1, 23))})"


class StateSaver(TenantReader):
    """Collects one change's rows, and writes them all or none. It does not read what it holds."""

    def __init__(self, pool: CheckpointPool, database: TenantDatabase, owner: Owner) -> None:
        super().__init__(pool, database, owner)
        self._batch = CheckpointBatch()

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[Any]:
        if not pipeline:
            async with super()._cursor() as cursor:
                yield cursor
            return
        collected = BatchCursor()
        yield collected
        collected.hand_over(self._batch)

    async def write(self, head: str | None) -> None:
        """Write what was collected.

        ``head`` is the thread's newest checkpoint, as it was when the change was made from it. It
        is not tried twice: after a commit whose answer was lost, the head is another one.

        Raises:
            ThreadNotFound: there is no such thread.
            ThreadBusy: a run holds it, or its head is another one now.
        """
        await self._database.call(self._owner, _WRITE, head, *self._batch.arguments())
