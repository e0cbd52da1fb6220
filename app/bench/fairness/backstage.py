"""What the bench does behind the scheduler's back, as a superuser: people, runs, looks inside.

The scheduler itself is left as it is. Only where its estimates are to be the true costs does a
trigger of the bench's put them in their place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from uuid import UUID, uuid4

import sqlalchemy as sa

from app.bench.fairness.people import SEATS
from tenancy.database.engine import create_engine
from tenancy.principal import UserId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.bench.fairness.people import Person, Size
    from tenancy.database.engine import DatabaseSettings

RUNS = 8
"""Of each person, in whose name their calls are made."""

_ADD_PERSON = (
    "INSERT INTO users (user_id, name) VALUES (:user, 'A person')",
    """
    INSERT INTO user_limits (user_id, limits)
    VALUES (:user, jsonb_build_object('weight', CAST(:weight AS float8)))
    """,
    """
    INSERT INTO threads (user_id, thread_id)
    SELECT CAST(:user AS uuid), gen_random_uuid() FROM generate_series(1, :runs)
    """,
    """
    INSERT INTO runs (
      user_id, run_id, thread_id, assistant_id, graph_id, request, due_at, created_at, updated_at
    )
    SELECT user_id, gen_random_uuid(), thread_id, user_id, 'agent', '{}', now(), now(), now()
    FROM threads WHERE user_id = :user
    """,
)
_CLEAR_QUEUE = ("DELETE FROM model_calls WHERE seat IS NULL",)
_CLEAR = (
    "DELETE FROM model_calls",
    "UPDATE model_users SET eligible = false WHERE eligible",
    """
    UPDATE runs SET state = 'cancelled', worker_id = NULL, ended_at = now()
    WHERE state IN ('pending', 'running')
    """,
    "DELETE FROM workers",
)
_WAITING = sa.text("SELECT count(*) FROM model_calls WHERE seat IS NULL")
_IS_IDLE = sa.text("""
SELECT (SELECT count(*) FROM model_calls WHERE seat IS NOT NULL) < :seats
  AND EXISTS (SELECT 1 FROM model_users WHERE eligible)
""").bindparams(seats=SEATS)
_TRUE_COSTS = (
    "CREATE UNLOGGED TABLE true_costs (run_id uuid PRIMARY KEY, cost float8 NOT NULL)",
    """
    CREATE FUNCTION know_true_cost() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
    BEGIN
      NEW.estimate := coalesce((
        SELECT t.cost FROM model_calls c JOIN true_costs t USING (run_id)
        WHERE c.user_id = NEW.user_id AND c.model = NEW.model AND c.seat IS NULL
        ORDER BY c.priority DESC, c.asked_at, c.call_id LIMIT 1
      ), NEW.estimate);
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER know_true_cost BEFORE UPDATE ON model_users
    FOR EACH ROW EXECUTE FUNCTION know_true_cost()
    """,
)
_FORGET_TRUE_COSTS = (
    "DROP TRIGGER know_true_cost ON model_users",
    "DROP FUNCTION know_true_cost",
    "DROP TABLE true_costs",
)
_PUT_TRUE_COST = """
INSERT INTO true_costs (run_id, cost) VALUES (:run, :cost)
ON CONFLICT (run_id) DO UPDATE SET cost = EXCLUDED.cost
"""


class Backstage:
    """A superuser's connections."""

    def __init__(self, owner: DatabaseSettings) -> None:
        self._engine = create_engine(owner)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._engine.dispose()

    async def add(self, people: Sequence[Person]) -> list[UserId]:
        """Let people come, each with runs that wait to be claimed."""
        users = [UserId(uuid4()) for _ in people]
        async with self._engine.begin() as connection:
            for user, person in zip(users, people, strict=True):
                for statement in _ADD_PERSON:
                    given = {"user": user, "weight": person.weight, "runs": RUNS}
                    used = {name: each for name, each in given.items() if f":{name}" in statement}
                    await connection.execute(sa.text(statement), used)
        return users

    async def clear(self) -> None:
        """Take away what a part of the bench has left."""
        await self._run_all(_CLEAR)

    async def empty_queue(self) -> None:
        """Take away every call that waits."""
        await self._run_all(_CLEAR_QUEUE)

    async def waiting(self) -> int:
        """How many calls wait."""
        return int(await self._value(_WAITING))

    async def has_idle_seat(self) -> bool:
        """Whether a seat is free while somebody is eligible."""
        return bool(await self._value(_IS_IDLE))

    async def know_true_costs(self) -> None:
        """From now on, have what is estimated be what is put down here."""
        await self._run_all(_TRUE_COSTS)

    async def forget_true_costs(self) -> None:
        """Leave estimates to the scheduler again."""
        await self._run_all(_FORGET_TRUE_COSTS)

    async def put_true_cost(self, run: UUID, size: Size) -> None:
        """Put down what a run's next call will cost."""
        async with self._engine.begin() as connection:
            await connection.execute(sa.text(_PUT_TRUE_COST), {"run": run, "cost": size.cost})

    async def _run_all(self, statements: Sequence[str]) -> None:
        async with self._engine.begin() as connection:
            for statement in statements:
                await connection.exec_driver_sql(statement)

    async def _value(self, statement: sa.Executable) -> Any:  # noqa: ANN401 - a scalar
        async with self._engine.connect() as connection:
            return (await connection.execute(statement)).scalar()
