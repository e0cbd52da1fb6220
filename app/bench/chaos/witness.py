"""A second record of how runs end, which the service neither makes nor can change.

The service says itself that a run ends once; the proof does not take its word for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

_STATEMENTS = (
    "CREATE SCHEMA witness",
    """
    CREATE TABLE witness.steps (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      run_id uuid NOT NULL, before text NOT NULL, after text NOT NULL, fence bigint NOT NULL
    )
    """,
    # As its owner, or the service's roles would need rights here.
    """
    CREATE FUNCTION witness.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    BEGIN
      INSERT INTO witness.steps (run_id, before, after, fence)
      VALUES (NEW.run_id, OLD.state, NEW.state, NEW.fence);
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER witness AFTER UPDATE OF state ON public.runs
    FOR EACH ROW WHEN (OLD.state IS DISTINCT FROM NEW.state) EXECUTE FUNCTION witness.note()
    """,
)


async def install_witness(owner: AsyncEngine) -> None:
    """Write down every change of a run's state from now on."""
    async with owner.begin() as connection:
        for statement in _STATEMENTS:
            await connection.execute(sa.text(statement))


async def survive_crashes(owner: AsyncEngine) -> None:
    """Hand every commit to the system, also on a server that is set up for speed.

    Here processes die, not machines, so what the system has got is not lost; and a server that
    waits for no disk is back in a moment.
    """
    async with owner.begin() as connection:
        name = await connection.scalar(sa.text("SELECT quote_ident(current_database())"))
        await connection.execute(sa.text(f"ALTER DATABASE {name} SET synchronous_commit = on"))
