"""The roles that see everybody's rows see nothing that anybody said."""

from __future__ import annotations

from dataclasses import replace

import asyncpg
import pytest
from sqlalchemy.engine import make_url

from tenancy.database.engine import DatabaseSettings, DatabaseUnavailable
from tenancy.database.roles import WrongRevision, WrongRole, assert_role
from tests.support.postgres import Role
from tests.support.tenancy import TestDatabase

CONTENT = {
    "users": ("name", "email"),
    "identities": ("identity",),
    "threads": ("title", "metadata"),
    "runs": ("request", "resume", "metadata", "error_message", "assistant_id"),
    "run_events": ("data", "checkpoint_ns"),
    "idempotency_keys": ("route", "key", "fingerprint"),
    "checkpoints": ("checkpoint", "metadata", "type", "parent_checkpoint_id"),
    "checkpoint_blobs": ("blob", "type"),
    "checkpoint_writes": ("blob", "channel", "type", "task_id", "task_path"),
    "store": (
        *("prefix", "key", "value", "words", "embedding", "embedding_model"),
        *("origin_thread_id", "origin_run_id"),
    ),
    "data_keys": ("wrapped",),
    "connections": (
        *("server", "url", "auth", "header", "credential", "listing", "listing_version"),
        "readable",
        *("listed_for", "refreshing_until", "approval", "approval_version", "grant_version"),
    ),
    "authorizations": ("state_hash", "server", "sealed"),
    "effects": (
        *("message_id", "tool_call_id", "server", "tool", "key", "arguments_sha256", "result"),
        *("connection_version", "grant_version", "repeated_for", "late_result"),
    ),
    "approvals": (
        *("interrupt_id", "message_id", "tool_call_id", "server", "tool", "arguments"),
        *("arguments_sha256", "asked", "decisions", "subject", "policy_version", "schema_sha256"),
        *("grant_version", "graph_version", "decided_arguments", "decided_sha256", "for_thread"),
        *("reason", "replies", "is_own", "memory_sha256"),
    ),
    "audit": ("tool_call_id", "server", "tool", "arguments_sha256", "policy_version"),
    "audit_references": ("salt",),
    "audit_texts": ("text",),
}
SCHEDULING = {
    "runs": ("request_id",),
    "run_queues": ("claimable", "rank", "served_at", "wake_at"),
    "claims": ("is_it", "vnow"),
    "model_users": ("model", "vtime", "estimate", "eligible"),
    "model_calls": (
        *("call_id", "model", "asked_at", "pool", "seat", "granted_at", "taken_at"),
        *("lost_at", "estimate", "charged", "weight"),
    ),
    "user_limits": ("plan", "limits"),
    "plans": ("plan", "limits"),
    "request_rates": ("arrival",),
    "usage_hours": (
        *("hour", "model", "calls", "prompt_tokens", "output_tokens", "seat_seconds"),
        *("wait_seconds", "longest_wait_seconds", "runs", "tool_calls"),
    ),
    "models": ("model", "context", "output", "vnow", "estimate", "call_seconds"),
    "model_servers": ("server", "url", "capacity"),
    "pools": (
        *("pool", "server", "model", "declared_capacity", "set_capacity", "capacity"),
        *("reason", "failures", "failed_for", "failing_since", "probed_at", "resized_at"),
    ),
    "seats": ("pool", "seat"),
    "data_keys": ("wrapping_key",),
    "connections": (
        *("connection_id", "enabled", "credential_kind", "reason", "listed_at"),
        *("check_wanted_at", "checking_until", "standing_version", "failing_since"),
        "failing_reason",
    ),
    "components": ("component", "epoch", "status", "reason", "occurred_at"),
    "effects": ("started_at", "sent", "late_at"),
    "approvals": ("approval_id", "kind", "decision", "decided_at", "refusals"),
    "audit": (
        *("audit_id", "at", "actor", "action", "approval_id", "decision", "why"),
        *("reference", "by_reference", "account", "object", "route"),
    ),
    "audit_references": ("reference",),
    "audit_texts": ("audit_id", "kind", "at"),
    "erasures": (
        *("erasure_id", "subject", "requested_by", "requested_at", "was_suspended", "step"),
        *("working_until", "attempts", "failure", "keys_destroyed", "tokens_revoked"),
        *("tokens_not_revoked", "folders_deleted", "deleted", "remaining", "verified_at"),
        "receipt",
    ),
    "erasure_stops": ("erasure_id", "stopped_at"),
    "tombstones": (
        *("erasure_id", "identity_hash", "user_hash", "key_id", "was_suspended", "plan", "limits"),
        *("day", "tokens_in_day", "tokens_in_month_before"),
    ),
}
"""Who waits and has how much, what operators set, which state a connection is in, what was done and
who leaves: numbers, times, codes, keyed hashes, and names of the operators' own."""
COLUMNS = [(table, column) for table, columns in CONTENT.items() for column in columns]


class TestRolesThatSeeEverybody:
    @pytest.mark.parametrize("role", ["dispatch", "maintenance"])
    async def test_read_no_column_that_holds_what_people_say(
        self, role: Role, database: TestDatabase
    ) -> None:
        connection = await database.connect(role)
        try:
            for table, column in COLUMNS:
                for statement in (
                    f"SELECT {column} FROM {table}",
                    f"SELECT count(*) FROM {table} WHERE {column}::text LIKE '%secret%'",
                    f"SELECT 1 FROM {table} ORDER BY {column}",
                    f"SELECT {table}.* FROM {table}",
                    f"SELECT to_jsonb({table}) FROM {table}",
                ):
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await connection.execute(statement)
        finally:
            await connection.close()

    @pytest.mark.parametrize("role", ["dispatch", "maintenance"])
    async def test_write_nothing_that_people_say(self, role: Role, database: TestDatabase) -> None:
        connection = await database.connect(role)
        try:
            for table, column in COLUMNS:
                # What is on record, maintenance deletes when its time is over, unread.
                may_delete = (role, table) == ("maintenance", "audit")
                for statement in (
                    f"UPDATE {table} SET {column} = NULL",
                    f"INSERT INTO {table} ({column}) VALUES (NULL)",
                    *([] if may_delete else [f"DELETE FROM {table}"]),
                    f"TRUNCATE {table} CASCADE",
                ):
                    with pytest.raises(asyncpg.InsufficientPrivilegeError):
                        await connection.execute(statement)
        finally:
            await connection.close()

    async def test_an_update_by_dispatch_returns_no_content(self, database: TestDatabase) -> None:
        connection = await database.connect("dispatch")
        try:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("UPDATE runs SET fence = fence RETURNING *")
        finally:
            await connection.close()

    async def test_the_list_of_content_leaves_no_column_out(
        self, superuser: asyncpg.Connection
    ) -> None:
        """A new column must choose: it holds content, or is of the kind that says nothing."""
        silent = {
            "user_id", "state", "created_at", "updated_at", "claimed_at", "ended_at", "expires_at",
            "ttl_minutes", "thread_id", "run_id", "worker_id", "seq", "fence", "attempt", "idx",
            "error_code", "multitask_strategy", "checkpoint_ns", "checkpoint_id", "version",
            "channel", "attempts_spent", "active_seconds", "cancel_requested_at", "cancel_action",
            "pruned_through", "pruned_at", "log_dropped_through", "log_dropped_at", "deleted_at",
            "unpruned_since", "ended_by", "event", "size",
            "graph_id", "resource_id", "host", "priority", "due_at", "state_at",
        }  # fmt: skip
        scheduling = {(table, column) for table, names in SCHEDULING.items() for column in names}
        rows = await superuser.fetch(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND table_name NOT IN ('workers', 'alembic_version')"
        )
        undecided = {
            (row["table_name"], row["column_name"])
            for row in rows
            if (row["table_name"], row["column_name"]) not in COLUMNS
            and row["column_name"] not in silent
        }
        assert undecided == scheduling


class TestTheServiceRole:
    @pytest.mark.parametrize(
        "statement",
        [
            "CREATE TABLE mine (n int)",
            "CREATE TEMPORARY TABLE threads (n int)",
            "TRUNCATE threads CASCADE",
            "ALTER TABLE threads DISABLE ROW LEVEL SECURITY",
            "DROP POLICY p ON threads",
            "SET ROLE stoa_owner",
            "UPDATE users SET state = 'active'",
            "SELECT dispatch.reap_expired_leases()",
            "UPDATE workers SET lease_until = now()",
            "SET session_replication_role = replica",
        ],
    )
    async def test_may_not(self, statement: str, template: TestDatabase) -> None:
        connection = await template.connect("service")
        try:
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.execute(statement)
            assert refused.value.sqlstate in ("42501", "42704"), refused.value
        finally:
            await connection.close()

    async def test_cannot_switch_row_security_off(self, database: TestDatabase) -> None:
        connection = await database.connect("service")
        try:
            await connection.execute("SET row_security = off")
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("SELECT count(*) FROM threads")
        finally:
            await connection.close()


class TestAtStartUp:
    async def test_the_roles_that_migrate_made_are_right(self, database: TestDatabase) -> None:
        await assert_role(database.settings("service"), reads_content=True)
        await assert_role(database.settings("dispatch"), reads_content=False)
        await assert_role(database.settings("maintenance"), reads_content=False)

    async def test_a_superuser_is_refused(self, database: TestDatabase) -> None:
        with pytest.raises(WrongRole, match="rolsuper"):
            await assert_role(database.settings("owner"), reads_content=True)

    async def test_the_service_role_is_refused_where_content_must_not_be_read(
        self, database: TestDatabase
    ) -> None:
        with pytest.raises(WrongRole, match="what people say"):
            await assert_role(database.settings("service"), reads_content=False)

    @pytest.mark.parametrize(
        ("fault", "undo", "complaint"),
        [
            ('ALTER ROLE "{0}" BYPASSRLS', 'ALTER ROLE "{0}" NOBYPASSRLS', "rolbypassrls"),
            ('ALTER ROLE "{0}" CREATEROLE', 'ALTER ROLE "{0}" NOCREATEROLE', "rolcreaterole"),
            ('GRANT stoa_owner TO "{0}"', 'REVOKE stoa_owner FROM "{0}"', "member of stoa_owner"),
            ('GRANT TRUNCATE ON threads TO "{0}"', "SELECT 1", "TRUNCATE"),
        ],
    )
    async def test_a_service_role_that_may_too_much_is_refused(
        self,
        fault: str,
        undo: str,
        complaint: str,
        database: TestDatabase,
        superuser: asyncpg.Connection,
    ) -> None:
        service = database.roles().service
        await superuser.execute(fault.format(service))
        try:
            with pytest.raises(WrongRole, match=complaint):
                await assert_role(database.settings("service"), reads_content=True)
        finally:
            await superuser.execute(undo.format(service))

    async def test_another_revision_is_refused(
        self, database: TestDatabase, superuser: asyncpg.Connection
    ) -> None:
        await superuser.execute("UPDATE alembic_version SET version_num = '9999'")
        with pytest.raises(WrongRevision, match="stoa migrate"):
            await assert_role(database.settings("service"), reads_content=True)

    @pytest.mark.parametrize("reads_content", [True, False])
    async def test_a_database_that_was_never_migrated_is_refused_with_advice(
        self, reads_content: bool, template: TestDatabase, empty_database: TestDatabase
    ) -> None:
        role: Role = "service" if reads_content else "dispatch"
        with pytest.raises(WrongRevision, match="stoa migrate"):
            await assert_role(empty_database.settings(role), reads_content=reads_content)

    async def test_no_server_is_a_domain_error_without_the_password(
        self, database: TestDatabase
    ) -> None:
        away = make_url(database.dsn("service")).set(host="127.0.0.1", port=1)
        settings = replace(
            database.settings("service"), dsn=away.render_as_string(hide_password=False)
        )
        with pytest.raises(DatabaseUnavailable) as refused:
            await assert_role(settings, reads_content=True)
        assert isinstance(settings, DatabaseSettings)
        assert str(away.password) not in str(refused.value)
