"""What a run needs to survive: attempts on record, cancels, idempotency keys, references.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    # A PID alone is somebody else's sooner or later: the start time says whose it was.
    """
    ALTER TABLE workers
      ADD COLUMN draining boolean NOT NULL DEFAULT false,
      ADD COLUMN process_started_at timestamptz
    """,
    # `attempt` numbers the claims; only those that a crash ended count against the limit.
    """
    ALTER TABLE runs
      ADD COLUMN attempts_spent int NOT NULL DEFAULT 0,
      ADD COLUMN active_seconds float8 NOT NULL DEFAULT 0,
      ADD COLUMN cancel_requested_at timestamptz,
      ADD COLUMN cancel_action text CHECK (cancel_action IN ('interrupt', 'rollback')),
      ADD COLUMN pruned_through int NOT NULL DEFAULT 0,
      ADD COLUMN pruned_at timestamptz,
      ADD CHECK ((cancel_requested_at IS NULL) = (cancel_action IS NULL)),
      ADD CHECK (multitask_strategy IN ('enqueue', 'reject', 'interrupt', 'rollback'))
    """,
    "UPDATE runs SET attempts_spent = greatest(attempt - 1, 0)",
    # An operator knows a run by its id alone. As text, so that no query of a person's takes this
    # index for cheaper than the one that begins with the user.
    "CREATE INDEX runs_by_id ON runs ((run_id::text))",
    # What retention has yet to look at.
    """
    CREATE INDEX runs_unpruned ON runs (ended_at)
      WHERE ended_at IS NOT NULL AND pruned_at IS NULL
    """,
    """
    CREATE TABLE run_attempts (
      user_id uuid NOT NULL,
      run_id uuid NOT NULL,
      fence bigint NOT NULL,
      attempt int NOT NULL,
      worker_id uuid NOT NULL,
      host text,
      claimed_at timestamptz NOT NULL,
      ended_at timestamptz,
      ended_by text,
      PRIMARY KEY (user_id, run_id, fence),
      FOREIGN KEY (user_id, run_id) REFERENCES runs ON DELETE CASCADE,
      CHECK ((ended_at IS NULL) = (ended_by IS NULL))
    ) WITH (fillfactor = 80)
    """,
    """
    CREATE TABLE idempotency_keys (
      user_id uuid NOT NULL REFERENCES users,
      route text NOT NULL,
      key text NOT NULL,
      fingerprint bytea NOT NULL,
      resource_id uuid NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, route, key)
    )
    """,
    "CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at)",
    # A state event names its checkpoint instead of holding its values.
    """
    ALTER TABLE run_events
      ADD COLUMN checkpoint_ns text,
      ADD COLUMN checkpoint_id text,
      ADD COLUMN size int GENERATED ALWAYS AS (octet_length(data)) STORED,
      ADD CHECK ((checkpoint_ns IS NULL) = (checkpoint_id IS NULL))
    """,
    # Which run wrote a row: what a rollback takes back, and how steps are counted.
    "ALTER TABLE checkpoints ADD COLUMN run_id uuid",
    "ALTER TABLE checkpoint_blobs ADD COLUMN run_id uuid",
    "ALTER TABLE checkpoint_writes ADD COLUMN run_id uuid",
    # A thread too large to delete in one go is gone for its owner at once, its rows soon after.
    "ALTER TABLE threads ADD COLUMN deleted_at timestamptz",
    "CREATE INDEX threads_deleted ON threads (deleted_at) WHERE deleted_at IS NOT NULL",
)


def upgrade() -> None:
    """Change the tables."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
