"""Users, threads, runs, events, workers, and LangGraph's checkpoint and store tables.

Policies and grants are not here: `tenancy.rls` declares them next to the tables, and every
`stoa migrate` applies that declaration after the last revision. Until then no role but the
owner may touch a new table.

The checkpoint and store tables are those of langgraph-checkpoint-postgres 3.2.0 (its
migrations 0-9 and 0-3) with `user_id` leading every key.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

STATEMENTS = (
    # The policies' function is needed by column defaults, so it comes first.
    "CREATE SCHEMA tenant",
    """
    CREATE FUNCTION tenant.user_id() RETURNS uuid
    LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
    BEGIN
      RETURN current_setting('app.user_id')::uuid;
    END $$
    """,
    "CREATE TYPE user_state AS ENUM ('active', 'suspended', 'erasing')",
    """
    CREATE TYPE run_state AS ENUM
      ('pending', 'running', 'waiting', 'success', 'error', 'timeout', 'cancelled')
    """,
    """
    CREATE TABLE users (
      user_id uuid PRIMARY KEY,
      state user_state NOT NULL DEFAULT 'active',
      name text,
      email text,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )
    """,
    """
    CREATE TABLE identities (
      user_id uuid NOT NULL REFERENCES users,
      identity text NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, identity),
      UNIQUE (identity)
    )
    """,
    """
    CREATE TABLE threads (
      user_id uuid NOT NULL REFERENCES users,
      thread_id uuid NOT NULL,
      title text,
      metadata jsonb NOT NULL DEFAULT '{}',
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, thread_id)
    )
    """,
    "CREATE INDEX threads_by_update ON threads (user_id, updated_at DESC, thread_id)",
    "CREATE INDEX threads_by_creation ON threads (user_id, created_at DESC, thread_id)",
    """
    CREATE TABLE workers (
      worker_id uuid PRIMARY KEY,
      host text NOT NULL,
      pid int NOT NULL,
      started_at timestamptz NOT NULL,
      lease_until timestamptz NOT NULL
    )
    """,
    """
    CREATE TABLE runs (
      user_id uuid NOT NULL,
      run_id uuid NOT NULL,
      thread_id uuid NOT NULL,
      assistant_id uuid NOT NULL,
      graph_id text NOT NULL,
      state run_state NOT NULL DEFAULT 'pending',
      fence bigint NOT NULL DEFAULT 0,
      attempt int NOT NULL DEFAULT 0,
      worker_id uuid REFERENCES workers,
      multitask_strategy text NOT NULL DEFAULT 'enqueue',
      metadata jsonb NOT NULL DEFAULT '{}',
      request jsonb NOT NULL,
      error_code text,
      error_message text,
      created_at timestamptz NOT NULL,
      updated_at timestamptz NOT NULL,
      claimed_at timestamptz,
      ended_at timestamptz,
      PRIMARY KEY (user_id, run_id),
      FOREIGN KEY (user_id, thread_id) REFERENCES threads ON DELETE CASCADE,
      CHECK ((state = 'running') = (worker_id IS NOT NULL)),
      CHECK ((state IN ('success', 'error', 'timeout', 'cancelled')) = (ended_at IS NOT NULL))
    ) WITH (fillfactor = 80)
    """,
    # One run holds a thread: while it runs, waits for a person, or was put back after a crash.
    """
    CREATE UNIQUE INDEX runs_hold_thread ON runs (user_id, thread_id)
      WHERE state IN ('running', 'waiting') OR (state = 'pending' AND fence > 0)
    """,
    "CREATE INDEX runs_queue ON runs (user_id, created_at, run_id) WHERE state = 'pending'",
    "CREATE INDEX runs_running ON runs (user_id) WHERE state = 'running'",
    "CREATE INDEX runs_by_worker ON runs (worker_id) WHERE worker_id IS NOT NULL",
    """
    CREATE INDEX runs_open_in_thread ON runs (user_id, thread_id, created_at, run_id)
      WHERE state IN ('pending', 'running', 'waiting')
    """,
    "CREATE INDEX runs_in_thread ON runs (user_id, thread_id, created_at DESC, run_id)",
    """
    CREATE TABLE run_events (
      user_id uuid NOT NULL,
      run_id uuid NOT NULL,
      seq int NOT NULL CHECK (seq > 0),
      event text NOT NULL,
      data bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, run_id, seq),
      FOREIGN KEY (user_id, run_id) REFERENCES runs ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE checkpoints (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      thread_id uuid NOT NULL,
      checkpoint_ns text NOT NULL DEFAULT '',
      checkpoint_id text NOT NULL,
      parent_checkpoint_id text,
      type text,
      checkpoint jsonb NOT NULL,
      metadata jsonb NOT NULL DEFAULT '{}',
      PRIMARY KEY (user_id, thread_id, checkpoint_ns, checkpoint_id),
      FOREIGN KEY (user_id, thread_id) REFERENCES threads ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE checkpoint_blobs (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      thread_id uuid NOT NULL,
      checkpoint_ns text NOT NULL DEFAULT '',
      channel text NOT NULL,
      version text NOT NULL,
      type text NOT NULL,
      blob bytea,
      PRIMARY KEY (user_id, thread_id, checkpoint_ns, channel, version),
      FOREIGN KEY (user_id, thread_id) REFERENCES threads ON DELETE CASCADE
    )
    """,
    """
    CREATE TABLE checkpoint_writes (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      thread_id uuid NOT NULL,
      checkpoint_ns text NOT NULL DEFAULT '',
      checkpoint_id text NOT NULL,
      task_id text NOT NULL,
      task_path text NOT NULL DEFAULT '',
      idx int NOT NULL,
      channel text NOT NULL,
      type text,
      blob bytea NOT NULL,
      PRIMARY KEY (user_id, thread_id, checkpoint_ns, checkpoint_id, task_id, idx),
      FOREIGN KEY (user_id, thread_id) REFERENCES threads ON DELETE CASCADE
    )
    """,
    # The library's SQL says ON CONFLICT (prefix, key), so that key stays; the check makes the
    # prefix itself begin with the owner's id, which no other user's row can.
    """
    CREATE TABLE store (
      user_id uuid NOT NULL DEFAULT tenant.user_id() REFERENCES users,
      prefix text NOT NULL,
      key text NOT NULL,
      value jsonb NOT NULL,
      created_at timestamptz DEFAULT CURRENT_TIMESTAMP,
      updated_at timestamptz DEFAULT CURRENT_TIMESTAMP,
      expires_at timestamptz,
      ttl_minutes int,
      PRIMARY KEY (user_id, prefix, key),
      UNIQUE (prefix, key),
      CHECK (split_part(prefix, '.', 1) = user_id::text)
    )
    """,
    "CREATE INDEX store_expiry ON store (expires_at) WHERE expires_at IS NOT NULL",
)


def upgrade() -> None:
    """Create the tables."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """There is nothing before the first revision."""
    raise RuntimeError("there is no way back from the first revision: restore a backup")
