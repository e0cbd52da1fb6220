"""Leaving: erasures and what stays of them, and a record that does not name people.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Whoever the record speaks of. Without this row nobody can tell any more whom it meant, nor,
    # without the salt, what its hashes were made of.
    """
    CREATE TABLE audit_references (
      user_id uuid PRIMARY KEY DEFAULT tenant.user_id() REFERENCES users,
      reference uuid NOT NULL UNIQUE DEFAULT gen_random_uuid(),
      salt bytea NOT NULL DEFAULT uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
    )
    """,
    "DROP TRIGGER IF EXISTS keep_record ON audit",
    "DROP TRIGGER IF EXISTS keep_record ON audit_texts",
    "ALTER TABLE audit NO FORCE ROW LEVEL SECURITY",
    "ALTER TABLE audit_texts NO FORCE ROW LEVEL SECURITY",
    "INSERT INTO audit_references (user_id) SELECT DISTINCT user_id FROM audit",
    # What a person wrote, and names of their own: theirs, and gone with them.
    """
    ALTER TABLE audit_texts
      DROP CONSTRAINT audit_texts_user_id_audit_id_fkey,
      ADD FOREIGN KEY (user_id) REFERENCES users,
      ADD COLUMN at timestamptz NOT NULL DEFAULT clock_timestamp()
    """,
    """
    UPDATE audit_texts t SET at = a.at
    FROM audit a WHERE a.user_id = t.user_id AND a.audit_id = t.audit_id
    """,
    # Facts only, and no user's id. ``reference`` is whom it was done to, null where it was done to
    # nobody in particular; ``by_reference`` is the operator, or whoever wanted to be one, and null
    # on the command line, where ``account`` is that of the operating system. ``object`` names
    # a pool or a plan, ``route`` what was called.
    """
    ALTER TABLE audit
      ADD COLUMN reference uuid,
      ADD COLUMN by_reference uuid,
      ADD COLUMN account text,
      ADD COLUMN object text,
      ADD COLUMN route text
    """,
    """
    UPDATE audit a
    SET reference = r.reference, arguments_sha256 = sha256(r.salt || a.arguments_sha256)
    FROM audit_references r WHERE r.user_id = a.user_id
    """,
    "DROP INDEX audit_rules",
    "ALTER TABLE audit DROP CONSTRAINT audit_pkey",
    # With its policies, which are made anew afterwards.
    "ALTER TABLE audit DROP COLUMN user_id CASCADE",
    "ALTER TABLE audit ADD PRIMARY KEY (audit_id)",
    # A column that was dropped stays in the rows that had it, which is nearly for good in a record
    # that nobody changes: they are written anew, without.
    "CLUSTER audit USING audit_pkey",
    "ALTER TABLE audit SET WITHOUT CLUSTER",
    "CREATE INDEX audit_of_one ON audit (reference, audit_id)",
    "CREATE INDEX audit_by_age ON audit (at)",
    # By whoever acted as an operator, or wanted to.
    """
    CREATE INDEX audit_acts ON audit (coalesce(by_reference::text, account), action, at)
      WHERE route IS NOT NULL
    """,
    "CREATE INDEX audit_by_action ON audit (action, audit_id)",
    "CREATE INDEX audit_rules ON audit (reference, at) WHERE action = 'rules_changed'",
    "CREATE INDEX audit_exports ON audit (reference, at) WHERE action = 'exported'",
    "ALTER TABLE users ADD COLUMN state_at timestamptz",
    "CREATE INDEX users_by_age ON users (created_at, user_id)",
    # A person's leaving, as a job that a crash only delays: ``step`` is what is done next. The
    # person's id stands here until their last row is gone, and that nothing is left was verified.
    """
    CREATE TABLE erasures (
      erasure_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
      subject uuid UNIQUE,
      requested_by text NOT NULL CHECK (requested_by IN ('person', 'operator', 'restore')),
      requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      was_suspended boolean NOT NULL DEFAULT false,
      step text NOT NULL DEFAULT 'record' CHECK (
        step IN (
          'record', 'revoke', 'destroy_keys', 'stop', 'delete', 'verify', 'sign', 'done'
        )
      ),
      working_until timestamptz,
      attempts int NOT NULL DEFAULT 0,
      failure text,
      keys_destroyed int NOT NULL DEFAULT 0,
      tokens_revoked int NOT NULL DEFAULT 0,
      tokens_not_revoked int NOT NULL DEFAULT 0,
      folders_deleted int NOT NULL DEFAULT 0,
      deleted jsonb NOT NULL DEFAULT '{}',
      remaining jsonb,
      verified_at timestamptz,
      ended_at timestamptz,
      receipt text,
      CHECK ((step IN ('sign', 'done')) = (subject IS NULL)),
      CHECK ((step = 'done') = (ended_at IS NOT NULL))
    )
    """,
    "CREATE INDEX erasures_to_do ON erasures (requested_at) WHERE step <> 'done'",
    "CREATE INDEX erasures_newest ON erasures (requested_at, erasure_id)",
    # Workers that hold nothing of the person any more: no run, connection, process, or folder.
    """
    CREATE TABLE erasure_stops (
      erasure_id uuid NOT NULL REFERENCES erasures,
      worker_id uuid NOT NULL,
      stopped_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      PRIMARY KEY (erasure_id, worker_id)
    )
    """,
    # What stays of a person for a while: keyed hashes, by which somebody who comes back is known
    # to have spent what they spent, and by which an erasure is done again after a restore.
    """
    CREATE TABLE tombstones (
      erasure_id uuid NOT NULL REFERENCES erasures,
      identity_hash bytea NOT NULL,
      user_hash bytea NOT NULL,
      key_id text NOT NULL,
      was_suspended boolean NOT NULL DEFAULT false,
      plan text,
      limits jsonb NOT NULL DEFAULT '{}',
      day date,
      tokens_in_day bigint NOT NULL DEFAULT 0,
      tokens_in_month_before bigint NOT NULL DEFAULT 0,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      expires_at timestamptz NOT NULL,
      PRIMARY KEY (erasure_id, identity_hash)
    )
    """,
    "CREATE INDEX tombstones_by_identity ON tombstones (identity_hash)",
    "CREATE INDEX tombstones_to_expire ON tombstones (expires_at)",
    # How much is kept of whom, without looking at it.
    """
    ALTER TABLE checkpoint_blobs
      ADD COLUMN size int GENERATED ALWAYS AS (coalesce(octet_length(blob), 0)) STORED
    """,
    """
    ALTER TABLE checkpoint_writes
      ADD COLUMN size int GENERATED ALWAYS AS (coalesce(octet_length(blob), 0)) STORED
    """,
    # What is kept for a while only: how old a state is, by the database's clock; since when a
    # thread has states that nobody has looked at; how far a run's whole log was dropped.
    "ALTER TABLE checkpoints ADD COLUMN created_at timestamptz NOT NULL DEFAULT clock_timestamp()",
    """
    ALTER TABLE threads
      ADD COLUMN unpruned_since timestamptz DEFAULT clock_timestamp(),
      ADD COLUMN ttl_minutes float8 CHECK (ttl_minutes > 0)
    """,
    "ALTER TABLE threads ALTER COLUMN unpruned_since DROP DEFAULT",
    # Not before that; a run that ended later keeps its thread for longer.
    """
    ALTER TABLE threads ADD COLUMN expires_at timestamptz GENERATED ALWAYS AS (
      (updated_at AT TIME ZONE 'UTC' + make_interval(secs => ttl_minutes * 60)) AT TIME ZONE 'UTC'
    ) STORED
    """,
    """
    ALTER TABLE runs
      ADD COLUMN log_dropped_through int NOT NULL DEFAULT 0,
      ADD COLUMN log_dropped_at timestamptz
    """,
    "CREATE INDEX threads_unpruned ON threads (unpruned_since) WHERE unpruned_since IS NOT NULL",
    "CREATE INDEX threads_to_expire ON threads (expires_at) WHERE expires_at IS NOT NULL",
    "CREATE INDEX threads_by_idleness ON threads (updated_at) WHERE deleted_at IS NULL",
    """
    CREATE INDEX runs_with_log ON runs (ended_at)
      WHERE ended_at IS NOT NULL AND log_dropped_at IS NULL
    """,
    "CREATE INDEX runs_ended ON runs (ended_at) WHERE ended_at IS NOT NULL",
    "CREATE INDEX audit_texts_by_age ON audit_texts (at)",
    # What is dropped all the time is vacuumed early, so that what is free is used again.
    *(
        f"""
        ALTER TABLE {table} SET (
          autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
          toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 2000
        )
        """
        for table in ("run_events", "checkpoints", "checkpoint_blobs", "checkpoint_writes")
    ),
)


def upgrade() -> None:
    """Create the tables, and take the users' ids out of the record."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
