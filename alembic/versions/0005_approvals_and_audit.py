"""Questions to people and their one decision each, and what is kept of who decided what.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

STATEMENTS = (
    # One row per call that waits for its person: whether it may be made (``call``), what its
    # server asks (``elicitation``), what became of one that nobody heard the end of
    # (``in_doubt``). ``arguments`` are exactly those of the call; ``asked`` is what else is shown.
    # What must still hold when the call is made: the versions. ``subject`` is what an approval
    # opens for the rest of the thread where the policy asks at the first use only: empty for the
    # tool, or the host that it turns to; null where it is for this call alone. Names of a person's
    # own servers (``is_own``) are theirs, as what they write is. ``refusals`` counts decisions that
    # were refused, as many as are put on record.
    """
    CREATE TABLE approvals (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      approval_id uuid NOT NULL DEFAULT gen_random_uuid(),
      thread_id uuid NOT NULL,
      run_id uuid NOT NULL,
      fence bigint NOT NULL,
      interrupt_id text NOT NULL,
      kind text NOT NULL CHECK (kind IN ('call', 'elicitation', 'in_doubt')),
      message_id text NOT NULL,
      tool_call_id text NOT NULL,
      server text,
      tool text NOT NULL,
      is_own boolean NOT NULL DEFAULT false,
      arguments jsonb NOT NULL,
      arguments_sha256 bytea NOT NULL,
      asked jsonb NOT NULL,
      decisions text[] NOT NULL,
      subject text,
      policy_version text,
      schema_sha256 bytea,
      grant_version bigint,
      graph_version text,
      memory_sha256 bytea,
      state text NOT NULL DEFAULT 'open'
        CHECK (state IN ('open', 'decided', 'expired', 'superseded')),
      decision text CHECK (decision IN (
        'approve', 'edit', 'reject', 'answer', 'happened', 'repeat', 'leave_out'
      )),
      decided_arguments jsonb,
      decided_sha256 bytea,
      for_thread boolean NOT NULL DEFAULT false,
      reason text,
      replies jsonb,
      created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
      expires_at timestamptz NOT NULL,
      decided_at timestamptz,
      refusals int NOT NULL DEFAULT 0,
      PRIMARY KEY (user_id, approval_id),
      UNIQUE (user_id, run_id, interrupt_id, tool_call_id),
      FOREIGN KEY (user_id, run_id) REFERENCES runs ON DELETE CASCADE,
      CHECK ((state = 'decided') = (decision IS NOT NULL)),
      CHECK ((state = 'open') = (decided_at IS NULL)),
      CHECK ((decided_arguments IS NULL) = (decided_sha256 IS NULL))
    )
    """,
    "CREATE INDEX approvals_newest ON approvals (user_id, created_at)",
    "CREATE INDEX approvals_of_thread ON approvals (user_id, thread_id, created_at)",
    # What waits for one person, however much waits for all the others.
    "CREATE INDEX approvals_open ON approvals (user_id, created_at) WHERE state = 'open'",
    "CREATE INDEX approvals_to_expire ON approvals (expires_at) WHERE state = 'open'",
    # What was asked, decided, refused and done, for good: nobody has the right to change or
    # delete a row, and a trigger refuses it to those who need none. Facts only; what a person
    # wrote, and names of their own, stand apart. The rows outlive what they speak of.
    """
    CREATE TABLE audit (
      user_id uuid NOT NULL DEFAULT tenant.user_id() REFERENCES users,
      audit_id bigint GENERATED ALWAYS AS IDENTITY,
      at timestamptz NOT NULL DEFAULT clock_timestamp(),
      actor text NOT NULL CHECK (actor IN ('person', 'service', 'operator')),
      action text NOT NULL,
      thread_id uuid,
      run_id uuid,
      approval_id uuid,
      tool_call_id text,
      server text,
      tool text,
      decision text,
      why text,
      arguments_sha256 bytea,
      policy_version text,
      expires_at timestamptz,
      PRIMARY KEY (user_id, audit_id)
    )
    """,
    "CREATE INDEX audit_rules ON audit (user_id, audit_id) WHERE action = 'rules_changed'",
    """
    CREATE TABLE audit_texts (
      user_id uuid NOT NULL DEFAULT tenant.user_id(),
      audit_id bigint NOT NULL,
      kind text NOT NULL CHECK (kind IN ('reason', 'server', 'tool')),
      text text NOT NULL,
      PRIMARY KEY (user_id, audit_id, kind),
      FOREIGN KEY (user_id, audit_id) REFERENCES audit
    )
    """,
    # A person's own, stricter word on a server's tools. ``approval_version`` grows with each
    # change of it; ``grant_version`` when the person gives or takes a credential, and not when
    # one is only renewed.
    """
    ALTER TABLE connections
      ADD COLUMN approval jsonb NOT NULL DEFAULT '{}',
      ADD COLUMN approval_version bigint NOT NULL DEFAULT 0,
      ADD COLUMN grant_version bigint NOT NULL DEFAULT 1
    """,
    # How often a call was sent, under which account, and by whose word after it was in doubt. An
    # outcome that came after the call was closed otherwise stands beside it.
    """
    ALTER TABLE effects
      ADD COLUMN grant_version bigint,
      ADD COLUMN sent int NOT NULL DEFAULT 1,
      ADD COLUMN repeated_for uuid,
      ADD COLUMN late_result jsonb,
      ADD COLUMN late_at timestamptz
    """,
)


def upgrade() -> None:
    """Create the tables and columns."""
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    """The way back is a backup, as for every revision."""
    raise RuntimeError("there is no way back from this revision: restore a backup")
