"""Fair shares: model queues and seats, a fair way into execution, limits and usage.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SANE_LIMITS = """
      CHECK (NOT jsonb_path_exists(
        limits, '$.* ? (@.type() != "number" && @.type() != "null")'
      )),
      CHECK ((limits ->> 'weight')::float8 BETWEEN 0.01 AND 1000),
      CHECK ((limits ->> 'requests_per_minute')::float8 BETWEEN 1 AND 1000000),
      CHECK (
        least(
          (limits ->> 'seats')::int, (limits ->> 'running')::int, (limits ->> 'queued')::bigint,
          (limits ->> 'threads')::bigint, (limits ->> 'memory_bytes')::bigint,
          (limits ->> 'tokens_per_day')::bigint, (limits ->> 'tokens_per_month')::bigint
        ) >= 0
      )"""
"""What the functions can do with: one value that they cannot would keep everybody from a seat."""

STATEMENTS = (
    # The pools, as the workers' settings declare them. A capacity that an operator sets stands
    # beside the declared one.
    """
    CREATE TABLE model_servers (
      server text PRIMARY KEY,
      url text NOT NULL,
      capacity int CHECK (capacity >= 0)
    )
    """,
    # One per model: the queue that all pools with this model serve, and its virtual time.
    """
    CREATE TABLE models (
      model text PRIMARY KEY,
      context int NOT NULL CHECK (context > 0),
      output int NOT NULL CHECK (output > 0),
      vnow bigint NOT NULL DEFAULT 0,
      estimate float8,
      call_seconds float8
    ) WITH (fillfactor = 20)
    """,
    """
    CREATE TABLE pools (
      pool text PRIMARY KEY,
      server text NOT NULL REFERENCES model_servers,
      model text NOT NULL REFERENCES models,
      declared_capacity int NOT NULL CHECK (declared_capacity >= 0),
      set_capacity int CHECK (set_capacity >= 0),
      capacity int NOT NULL
        GENERATED ALWAYS AS (coalesce(set_capacity, declared_capacity)) STORED,
      resized_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'failing', 'removed')),
      reason text,
      failures int NOT NULL DEFAULT 0,
      failed_for bytea,
      failing_since timestamptz,
      probed_at timestamptz,
      CHECK ((state = 'failing') = (failing_since IS NOT NULL))
    ) WITH (fillfactor = 50)
    """,
    """
    CREATE TABLE seats (
      pool text NOT NULL REFERENCES pools,
      seat int NOT NULL CHECK (seat > 0),
      PRIMARY KEY (pool, seat)
    )
    """,
    # The rank of whoever's run was claimed last: one row.
    """
    CREATE TABLE claims (
      is_it boolean PRIMARY KEY DEFAULT true CHECK (is_it),
      vnow bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 20)
    """,
    "INSERT INTO claims DEFAULT VALUES",
    # Who has runs waiting to be executed, in the order in which they are served. `claimable` may
    # be true in vain, never false in vain; `rank` may lag behind a person's virtual time.
    """
    CREATE TABLE run_queues (
      user_id uuid PRIMARY KEY REFERENCES users,
      claimable boolean NOT NULL DEFAULT true,
      rank bigint NOT NULL DEFAULT 0,
      served_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      wake_at timestamptz
    ) WITH (fillfactor = 50)
    """,
    "CREATE INDEX run_queues_next ON run_queues (rank, served_at, user_id) WHERE claimable",
    "CREATE INDEX run_queues_asleep ON run_queues (wake_at) WHERE wake_at IS NOT NULL",
    "INSERT INTO run_queues (user_id) SELECT user_id FROM users",
    # The reference is to the user's queue and not to the user: it is looked at again where a row is
    # changed twice in one transaction, and an erasure that holds the user must not hold up a model.
    """
    CREATE TABLE model_users (
      user_id uuid NOT NULL REFERENCES run_queues,
      model text NOT NULL REFERENCES models,
      vtime bigint NOT NULL,
      estimate float8,
      eligible boolean NOT NULL DEFAULT false,
      PRIMARY KEY (user_id, model)
    ) WITH (fillfactor = 50)
    """,
    "CREATE INDEX model_users_next ON model_users (model, vtime, user_id) WHERE eligible",
    # A call from the moment when it asks for a seat until it is settled. While a seat is named,
    # nobody else has it. A run cannot be deleted from under its calls.
    """
    CREATE TABLE model_calls (
      user_id uuid NOT NULL,
      call_id uuid NOT NULL,
      run_id uuid,
      fence bigint NOT NULL,
      worker_id uuid NOT NULL,
      model text NOT NULL,
      priority int NOT NULL,
      asked_at timestamptz NOT NULL,
      pool text,
      seat int,
      granted_at timestamptz,
      taken_at timestamptz,
      lost_at timestamptz,
      estimate float8 NOT NULL DEFAULT 0,
      charged bigint NOT NULL DEFAULT 0,
      weight float8 NOT NULL DEFAULT 1,
      PRIMARY KEY (user_id, call_id),
      FOREIGN KEY (user_id, run_id) REFERENCES runs ON DELETE RESTRICT,
      FOREIGN KEY (user_id, model) REFERENCES model_users,
      FOREIGN KEY (pool, seat) REFERENCES seats,
      CHECK ((pool IS NULL) = (seat IS NULL)),
      CHECK ((seat IS NULL) = (granted_at IS NULL)),
      CHECK (granted_at IS NOT NULL OR taken_at IS NULL),
      CHECK (granted_at IS NOT NULL OR run_id IS NOT NULL)
    ) WITH (fillfactor = 70)
    """,
    """
    CREATE INDEX model_calls_waiting
      ON model_calls (user_id, model, priority DESC, asked_at, call_id) WHERE seat IS NULL
    """,
    "CREATE UNIQUE INDEX model_calls_seated ON model_calls (pool, seat) WHERE seat IS NOT NULL",
    "CREATE INDEX model_calls_of_user ON model_calls (user_id, model) WHERE seat IS NOT NULL",
    # `due_at`: when a run takes its place in its thread's queue.
    """
    ALTER TABLE runs
      ADD COLUMN priority int NOT NULL DEFAULT 0 CHECK (priority BETWEEN -100 AND 100),
      ADD COLUMN due_at timestamptz
    """,
    "UPDATE runs SET due_at = created_at",
    "ALTER TABLE runs ALTER COLUMN due_at SET NOT NULL",
    "DROP INDEX runs_queue",
    """
    CREATE INDEX runs_queue ON runs (user_id, priority DESC, due_at, run_id)
      WHERE state = 'pending'
    """,
    "DROP INDEX runs_open_in_thread",
    """
    CREATE INDEX runs_open_in_thread ON runs (user_id, thread_id, due_at, run_id)
      WHERE state IN ('pending', 'running', 'waiting')
    """,
    # Limits are sparse: what is absent is the plan's, then the plan `default`'s, then a setting's.
    # A null is no limit.
    f"""
    CREATE TABLE plans (
      plan text PRIMARY KEY CHECK (plan ~ '^[a-z0-9][a-z0-9_-]{{0,39}}$'),
      limits jsonb NOT NULL DEFAULT '{{}}',
      CHECK (jsonb_typeof(limits) = 'object'),
      {SANE_LIMITS}
    )
    """,
    f"""
    CREATE TABLE user_limits (
      user_id uuid PRIMARY KEY REFERENCES users,
      plan text REFERENCES plans,
      limits jsonb NOT NULL DEFAULT '{{}}',
      updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      CHECK (jsonb_typeof(limits) = 'object'),
      {SANE_LIMITS}
    )
    """,
    "CREATE INDEX user_limits_by_plan ON user_limits (plan)",
    # Of the generic cell rate algorithm: the theoretical arrival time of the next request. Not
    # unlogged: in a copied database, the index of such a table was broken after a crash.
    """
    CREATE TABLE request_rates (
      user_id uuid PRIMARY KEY REFERENCES users,
      arrival timestamptz NOT NULL
    ) WITH (fillfactor = 50)
    """,
    # By the hour of the settle, and by model; what belongs to no model is under ''.
    """
    CREATE TABLE usage_hours (
      user_id uuid NOT NULL REFERENCES users,
      hour timestamptz NOT NULL,
      model text NOT NULL,
      calls int NOT NULL DEFAULT 0,
      prompt_tokens bigint NOT NULL DEFAULT 0,
      output_tokens bigint NOT NULL DEFAULT 0,
      seat_seconds float8 NOT NULL DEFAULT 0,
      wait_seconds float8 NOT NULL DEFAULT 0,
      longest_wait_seconds float8 NOT NULL DEFAULT 0,
      runs int NOT NULL DEFAULT 0,
      tool_calls int NOT NULL DEFAULT 0,
      PRIMARY KEY (user_id, hour, model)
    ) WITH (fillfactor = 50)
    """,
    "CREATE INDEX usage_hours_by_hour ON usage_hours (hour)",
)


def upgrade() -> None:
    """Change the tables."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
