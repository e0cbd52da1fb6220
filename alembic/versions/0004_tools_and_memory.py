"""Tools and memory for one person: the vault, connections, the ledger of effects, recall.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

STATEMENTS = (
    # One per user and version, wrapped under a key-encryption key of the environment. What was
    # sealed under it names the version, so both kinds of key can be replaced.
    """
    CREATE TABLE data_keys (
      user_id uuid NOT NULL DEFAULT tenant.user_id() REFERENCES users,
      version int NOT NULL CHECK (version > 0),
      wrapping_key text NOT NULL,
      wrapped bytea NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, version)
    )
    """,
    # A person's link to one MCP server: of the operator's catalogue (``url`` is null), or their
    # own, which has a URL, and how it wants to be told who calls. A row exists once there is
    # something to say of it. ``version`` grows with each change of the credential and of whether
    # it may be used: no call is made under an older. ``listed_for`` is the version that listed.
    """
    CREATE TABLE connections (
      user_id uuid NOT NULL DEFAULT tenant.user_id() REFERENCES users,
      server text NOT NULL CHECK (server ~ '^[a-z0-9][a-z0-9-]{0,39}$'),
      connection_id uuid NOT NULL DEFAULT gen_random_uuid(),
      url text,
      auth text CHECK (auth IN ('none', 'key', 'oauth')),
      header text,
      enabled boolean NOT NULL DEFAULT true,
      version bigint NOT NULL DEFAULT 1,
      credential bytea,
      credential_kind text CHECK (credential_kind IN ('key', 'oauth')),
      expires_at timestamptz,
      refreshing_until timestamptz,
      state text NOT NULL DEFAULT 'unknown' CHECK (
        state IN ('unknown', 'available', 'unavailable', 'needs_key', 'needs_authorization')
      ),
      reason text,
      listing jsonb,
      listing_version text,
      listed_for bigint,
      listed_at timestamptz,
      check_wanted_at timestamptz,
      checking_until timestamptz,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      updated_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, server),
      UNIQUE (user_id, connection_id),
      CHECK ((credential IS NULL) = (credential_kind IS NULL)),
      CHECK ((url IS NULL) = (auth IS NULL))
    )
    """,
    """
    CREATE INDEX connections_to_check ON connections (check_wanted_at)
      WHERE check_wanted_at IS NOT NULL
    """,
    # An OAuth authorization under way. Found by the hash of its state *and* its owner, taken once.
    """
    CREATE TABLE authorizations (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      state_hash bytea NOT NULL,
      server text NOT NULL,
      sealed bytea NOT NULL,
      expires_at timestamptz NOT NULL,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (user_id, state_hash),
      FOREIGN KEY (user_id, server) REFERENCES connections ON DELETE CASCADE
    )
    """,
    # The ledger: one row per tool call that may change the world, committed before the call.
    """
    CREATE TABLE effects (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      thread_id uuid NOT NULL,
      message_id text NOT NULL,
      tool_call_id text NOT NULL,
      run_id uuid NOT NULL,
      fence bigint NOT NULL,
      server text NOT NULL,
      tool text NOT NULL,
      key uuid NOT NULL,
      arguments_sha256 bytea NOT NULL,
      connection_version bigint,
      state text NOT NULL CHECK (state IN ('started', 'asking', 'done', 'failed')),
      result jsonb,
      started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      ended_at timestamptz,
      PRIMARY KEY (user_id, thread_id, message_id, tool_call_id),
      FOREIGN KEY (user_id, thread_id) REFERENCES threads ON DELETE CASCADE
    )
    """,
    # What the person answered to what a run waits for: a map from interrupts' ids, stored when
    # it is accepted, so that every later attempt passes the same.
    "ALTER TABLE runs ADD COLUMN resume jsonb",
    # Recall. The origin says which conversation an item comes from; only the service sets it.
    """
    ALTER TABLE store
      ADD COLUMN origin_thread_id uuid,
      ADD COLUMN origin_run_id uuid,
      ADD COLUMN words tsvector,
      ADD COLUMN embedding real[],
      ADD COLUMN embedding_model text
    """,
    # Nothing makes an embedding smaller, so nothing is to be tried.
    "ALTER TABLE store ALTER COLUMN embedding SET STORAGE EXTERNAL",
)


def upgrade() -> None:
    """Create the tables and columns."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
