"""The tables, as SQLAlchemy Core sees them. Created by ``alembic/``, guarded by ``tenancy.rls``.

Rows are joined by explicit conditions; there are no ORM entities and no relationships.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Enum,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from tenancy.run_states import RunState

metadata = MetaData()

USER_STATES = ("active", "suspended", "erasing")

user_state = Enum(*USER_STATES, name="user_state", create_type=False)
run_state = Enum(*(state.value for state in RunState), name="run_state", create_type=False)


def _at(name: str) -> Column[object]:
    return Column(name, DateTime(timezone=True))


users = Table(
    "users",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("state", user_state),
    Column("name", Text),
    Column("email", Text),
    _at("created_at"),
)

identities = Table(
    "identities",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("identity", Text, primary_key=True),
    _at("created_at"),
)

threads = Table(
    "threads",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("thread_id", UUID, primary_key=True),
    Column("title", Text),
    Column("metadata", JSONB),
    _at("created_at"),
    _at("updated_at"),
    _at("deleted_at"),
    Column("ttl_minutes", Float),
    _at("expires_at"),
)

runs = Table(
    "runs",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("run_id", UUID, primary_key=True),
    Column("thread_id", UUID),
    Column("assistant_id", UUID),
    Column("graph_id", Text),
    Column("state", run_state),
    Column("fence", BigInteger),
    Column("attempt", Integer),
    Column("attempts_spent", Integer),
    Column("active_seconds", Float),
    Column("worker_id", UUID),
    Column("multitask_strategy", Text),
    Column("metadata", JSONB),
    Column("request", JSONB),
    Column("error_code", Text),
    Column("error_message", Text),
    Column("cancel_action", Text),
    Column("pruned_through", Integer),
    Column("log_dropped_through", Integer),
    Column("priority", Integer),
    _at("due_at"),
    _at("pruned_at"),
    _at("cancel_requested_at"),
    _at("created_at"),
    _at("updated_at"),
    _at("claimed_at"),
    _at("ended_at"),
)

run_attempts = Table(
    "run_attempts",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("run_id", UUID, primary_key=True),
    Column("fence", BigInteger, primary_key=True),
    Column("attempt", Integer),
    Column("worker_id", UUID),
    Column("host", Text),
    _at("claimed_at"),
    _at("ended_at"),
    Column("ended_by", Text),
)

approvals = Table(
    "approvals",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("approval_id", UUID, primary_key=True),
    Column("thread_id", UUID),
    Column("run_id", UUID),
    Column("fence", BigInteger),
    Column("interrupt_id", Text),
    Column("kind", Text),
    Column("message_id", Text),
    Column("tool_call_id", Text),
    Column("server", Text),
    Column("tool", Text),
    Column("is_own", Boolean),
    Column("arguments", JSONB),
    Column("arguments_sha256", LargeBinary),
    Column("asked", JSONB),
    Column("decisions", ARRAY(Text)),
    Column("subject", Text),
    Column("policy_version", Text),
    Column("schema_sha256", LargeBinary),
    Column("grant_version", BigInteger),
    Column("graph_version", Text),
    Column("memory_sha256", LargeBinary),
    Column("state", Text),
    Column("decision", Text),
    Column("decided_arguments", JSONB),
    Column("decided_sha256", LargeBinary),
    Column("for_thread", Boolean),
    Column("reason", Text),
    Column("replies", JSONB),
    _at("created_at"),
    _at("expires_at"),
    _at("decided_at"),
    Column("refusals", Integer),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("route", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", LargeBinary),
    Column("resource_id", UUID),
    _at("created_at"),
)

run_events = Table(
    "run_events",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("run_id", UUID, primary_key=True),
    Column("seq", Integer, primary_key=True),
    Column("event", Text),
    Column("data", LargeBinary),
    Column("size", Integer),
    Column("checkpoint_ns", Text),
    Column("checkpoint_id", Text),
    _at("created_at"),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("user_id", UUID, primary_key=True),
    Column("thread_id", UUID, primary_key=True),
    Column("checkpoint_ns", Text, primary_key=True),
    Column("checkpoint_id", Text, primary_key=True),
    Column("parent_checkpoint_id", Text),
    Column("run_id", UUID),
    Column("checkpoint", JSONB),
    Column("metadata", JSONB),
)
