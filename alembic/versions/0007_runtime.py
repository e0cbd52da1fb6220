"""What parts of the service are able to do, and which request a run came with.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = (
    # One current row per part that everybody shares: ``workers``, and ``model:POOL`` for each pool.
    # ``epoch`` is what its checks were passed by last: a worker's boot, a probe.
    """
    CREATE TABLE components (
      component text PRIMARY KEY,
      epoch uuid NOT NULL,
      status text NOT NULL CHECK (status IN ('available', 'degraded', 'unavailable')),
      reason text,
      occurred_at timestamptz,
      version bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
      CHECK ((status = 'available') = (reason IS NULL)),
      CHECK ((status = 'available') = (occurred_at IS NULL))
    )
    """,
    # When a worker had passed its checks, and said so. Those of the version before never say it:
    # they count until they leave.
    "ALTER TABLE workers ADD COLUMN ready_at timestamptz",
    "UPDATE workers SET ready_at = started_at",
    # How a person's own link stands, told with a number that grows; since when it does not work,
    # and why not at first. A new row begins beyond the numbers of one of the same name that was
    # removed.
    """
    ALTER TABLE connections
      ADD COLUMN standing_version bigint NOT NULL
        DEFAULT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
      ADD COLUMN failing_since timestamptz,
      ADD COLUMN failing_reason text
    """,
    """
    UPDATE connections SET failing_since = updated_at, failing_reason = reason
    WHERE state = 'unavailable' AND enabled
    """,
    # What a server lets be read beside its tools: resources and prompts, by the part, as it listed
    # them last. Listed for whom ``listing`` was; a part that it has never said is not there.
    "ALTER TABLE connections ADD COLUMN readable jsonb",
    # The id of the request that a run came with: the worker's log lines, its tools' calls and its
    # model's say it too.
    "ALTER TABLE runs ADD COLUMN request_id text CHECK (length(request_id) BETWEEN 1 AND 64)",
)


def upgrade() -> None:
    """Add the parts' table, and the columns."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
