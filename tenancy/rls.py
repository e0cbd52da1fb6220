"""Row-level security, declared once: per table, who may do what, and to which rows.

``stoa migrate`` applies this declaration after the last revision, every time, in the same
transaction. ``tests/isolation/test_catalogue.py`` reads the catalogue back and fails for
anything that the declaration does not say: a table with a ``user_id`` and no forced policy, a
grant too many.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ALL = ("*",)
"""Every column: a table-level grant."""

OWNER_ROLE = "stoa_owner"
"""Owns every table and function; nobody can log in as it."""

OWN_ROWS = "user_id = (SELECT tenant.user_id())"
OWN_IDENTITY = "identity = (SELECT tenant.identity())"
OWN_RECORD = "reference = (SELECT tenant.own_reference())"
"""The record names nobody: whose a row is, a row of ``audit_references`` says."""
OWN_TOMBSTONE = "identity_hash = ANY (tenant.identity_hashes())"
OWN_ROWS_ERASED = f"{OWN_ROWS} AND (SELECT tenant.is_erasing())"
"""A person's rows, while they are being erased: what is deleted then and at no other time."""
OWN_ROWS_RETURNED = f"{OWN_ROWS} AND (SELECT tenant.has_tombstone())"
"""A person's rows, while somebody signs in whose tombstone still stands."""
OWN_USAGE_OVER = (
    f"{OWN_ROWS} AND ((SELECT tenant.is_erasing())"
    " OR hour < (SELECT clock_timestamp()) - interval '62 days')"
)
"""A person's usage that no budget counts any more, or all of it while they are being erased."""
OWN_USER_ERASED = f"{OWN_ROWS} AND state = 'erasing'"
OWN_IDENTITIES = (
    "CASE WHEN coalesce(current_setting('app.identity', true), '') <> ''"
    f" THEN {OWN_IDENTITY} ELSE {OWN_ROWS} END"
)
"""By the identity where somebody signs in; else the bound user's."""
EVERY_ROW = "true"


@dataclass(frozen=True, slots=True)
class Roles:
    """The names of the login roles; they come from the DSNs that the operator set."""

    service: str
    dispatch: str
    maintenance: str


@dataclass(frozen=True, slots=True)
class Access:
    """What one role may do to one table: privilege to columns, and the rows it sees."""

    grants: Mapping[str, tuple[str, ...]]
    rows: str
    exceptions: Mapping[str, str] = field(default_factory=dict)
    """Privileges to which other rows belong."""

    def rows_of(self, command: str) -> str:
        """The rows that a privilege is about."""
        return self.exceptions.get(command, self.rows)


@dataclass(frozen=True, slots=True)
class TableRules:
    """A table's rules. ``personal`` ones have a ``user_id`` and forced row security.

    So have others of which a role sees some rows only.
    """

    service: Access | None = None
    dispatch: Access | None = None
    maintenance: Access | None = None
    personal: bool = True

    @property
    def secured(self) -> bool:
        """Whether row security is forced."""
        accesses = (self.service, self.dispatch, self.maintenance)
        return self.personal or any(
            access is not None and (access.rows != EVERY_ROW or access.exceptions)
            for access in accesses
        )


def _own(*update: str, insert: bool = True, delete: bool = True) -> Access:
    """What the service does to a person's rows. Where it deletes none, an erasure does."""
    grants: dict[str, tuple[str, ...]] = {"SELECT": ALL}
    if insert:
        grants["INSERT"] = ALL
    if update:
        grants["UPDATE"] = update
    grants["DELETE"] = ALL
    return Access(grants, OWN_ROWS, {} if delete else {"DELETE": OWN_ROWS_ERASED})


def _counts(*columns: str) -> Access:
    return Access({"SELECT": ("user_id", *columns)}, EVERY_ROW)


RULES: Mapping[str, TableRules] = {
    # FOR KEY SHARE on users needs UPDATE on one column, and a SELECT and an UPDATE policy.
    "users": TableRules(
        service=Access(
            {"SELECT": ALL, "INSERT": ALL, "UPDATE": ("name", "email"), "DELETE": ALL},
            OWN_ROWS,
            {"DELETE": OWN_USER_ERASED},
        ),
        dispatch=Access(
            {"SELECT": ("user_id", "state", "state_at"), "UPDATE": ("state", "state_at")}, EVERY_ROW
        ),
        maintenance=_counts("state", "state_at", "created_at"),
    ),
    "identities": TableRules(
        service=Access(
            {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
            OWN_IDENTITIES,
            {"INSERT": OWN_IDENTITY, "DELETE": OWN_ROWS_ERASED},
        ),
        maintenance=_counts("created_at"),
    ),
    "threads": TableRules(
        service=_own(
            *("title", "metadata", "updated_at", "deleted_at", "unpruned_since", "ttl_minutes")
        ),
        maintenance=_counts(
            *("thread_id", "created_at", "updated_at", "deleted_at", "unpruned_since"),
            *("ttl_minutes", "expires_at"),
        ),
    ),
    "runs": TableRules(
        service=_own(
            *("state", "fence", "error_code", "error_message", "worker_id", "ended_at"),
            *("updated_at", "cancel_requested_at", "cancel_action", "pruned_through", "pruned_at"),
            *("resume", "log_dropped_through", "log_dropped_at"),
        ),
        dispatch=Access(
            {
                "SELECT": (
                    *("user_id", "run_id", "thread_id", "state", "fence", "attempt"),
                    *("attempts_spent", "active_seconds", "worker_id", "cancel_requested_at"),
                    *("cancel_action", "priority", "due_at", "created_at", "updated_at"),
                    "claimed_at",
                ),
                "UPDATE": (
                    *("state", "fence", "attempt", "attempts_spent", "worker_id"),
                    *("claimed_at", "updated_at", "ended_at"),
                    *("cancel_requested_at", "cancel_action"),
                ),
            },
            EVERY_ROW,
        ),
        maintenance=_counts(
            *("run_id", "thread_id", "graph_id", "state", "fence", "attempt", "attempts_spent"),
            *("active_seconds", "worker_id", "multitask_strategy", "cancel_requested_at"),
            *("cancel_action", "error_code", "pruned_through", "pruned_at"),
            *("log_dropped_through", "log_dropped_at"),
            *("priority", "due_at", "created_at", "updated_at", "claimed_at", "ended_at"),
            "request_id",
        ),
    ),
    "run_attempts": TableRules(
        service=_own("ended_at", "ended_by"),
        dispatch=Access(
            {"SELECT": ALL, "INSERT": ALL, "UPDATE": ("ended_at", "ended_by")}, EVERY_ROW
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "run_events": TableRules(
        service=_own(),
        maintenance=_counts("run_id", "seq", "event", "size", "checkpoint_id", "created_at"),
    ),
    "idempotency_keys": TableRules(
        service=_own("fingerprint", "resource_id", "created_at"),
        maintenance=_counts("created_at"),
    ),
    "checkpoints": TableRules(
        service=_own("checkpoint", "metadata", "parent_checkpoint_id"),
        maintenance=_counts("thread_id", "checkpoint_ns", "checkpoint_id", "run_id", "created_at"),
    ),
    "checkpoint_blobs": TableRules(
        service=_own(),
        maintenance=_counts("thread_id", "checkpoint_ns", "channel", "version", "size"),
    ),
    "checkpoint_writes": TableRules(
        service=_own("channel", "type", "blob"),
        maintenance=_counts("thread_id", "checkpoint_ns", "checkpoint_id", "size"),
    ),
    "store": TableRules(
        service=_own(
            *("value", "updated_at", "expires_at", "ttl_minutes"),
            *("origin_thread_id", "origin_run_id", "words", "embedding", "embedding_model"),
        ),
        maintenance=_counts("created_at", "updated_at", "expires_at"),
    ),
    "data_keys": TableRules(
        service=_own("wrapping_key", "wrapped"),
        maintenance=_counts("version", "wrapping_key", "created_at"),
    ),
    # Whoever checks connections for everybody knows them by an id: names and addresses of
    # people's own servers are theirs.
    "connections": TableRules(
        service=_own(
            *("enabled", "version", "credential", "credential_kind", "expires_at"),
            *("refreshing_until", "state", "reason", "listing", "listing_version", "listed_for"),
            "readable",
            *("listed_at", "check_wanted_at", "checking_until", "updated_at"),
            *("approval", "approval_version", "grant_version"),
        ),
        dispatch=Access(
            {
                "SELECT": ("user_id", "connection_id", "check_wanted_at", "checking_until"),
                "UPDATE": ("checking_until",),
            },
            EVERY_ROW,
        ),
        maintenance=_counts(
            *("connection_id", "enabled", "version", "credential_kind", "expires_at", "state"),
            *("reason", "listed_at", "created_at", "updated_at"),
            *("standing_version", "failing_since", "failing_reason"),
        ),
    ),
    "authorizations": TableRules(
        service=_own(),
        maintenance=_counts("expires_at", "created_at"),
    ),
    "effects": TableRules(
        service=_own(
            *("run_id", "fence", "connection_version", "state", "result", "ended_at"),
            *("grant_version", "sent", "repeated_for", "late_result", "late_at"),
        ),
        maintenance=_counts(
            *("thread_id", "run_id", "fence", "state", "started_at", "ended_at", "sent", "late_at"),
        ),
    ),
    # Whoever looks for those whose time is over knows them by their ids.
    "approvals": TableRules(
        service=_own(
            *("state", "decision", "decided_arguments", "decided_sha256", "for_thread", "reason"),
            *("replies", "decided_at", "refusals"),
        ),
        dispatch=Access(
            {
                "SELECT": (
                    *("user_id", "run_id", "approval_id", "kind", "state"),
                    *("created_at", "expires_at"),
                )
            },
            EVERY_ROW,
        ),
        maintenance=_counts(
            *("approval_id", "thread_id", "run_id", "kind", "state", "decision"),
            *("created_at", "expires_at", "decided_at"),
        ),
    ),
    "audit_references": TableRules(
        service=_own(delete=False),
        dispatch=Access({"SELECT": ("user_id", "reference"), "INSERT": ("user_id",)}, EVERY_ROW),
        maintenance=_counts("reference"),
    ),
    # Nobody changes what is on record, and nobody deletes it before its time: a trigger's word.
    "audit": TableRules(
        service=Access({"SELECT": ALL, "INSERT": ALL}, OWN_RECORD),
        # Who acted on whom: not which tools people use, nor with what.
        dispatch=Access(
            {
                "SELECT": (
                    *("at", "reference", "by_reference", "account", "action", "route", "object"),
                ),
                "INSERT": (
                    *("reference", "by_reference", "account", "actor", "action", "route"),
                    *("object", "why"),
                ),
            },
            EVERY_ROW,
        ),
        maintenance=Access(
            {
                "SELECT": (
                    *("audit_id", "at", "reference", "by_reference", "account", "actor", "action"),
                    *("route", "object", "thread_id", "run_id", "approval_id", "decision", "why"),
                    "expires_at",
                ),
                "DELETE": ALL,
            },
            EVERY_ROW,
        ),
        personal=False,
    ),
    "audit_texts": TableRules(
        service=_own(),
        maintenance=_counts("audit_id", "kind", "at"),
    ),
    "erasures": TableRules(
        dispatch=Access({"SELECT": ALL, "INSERT": ALL, "UPDATE": ALL}, EVERY_ROW),
        maintenance=Access({"SELECT": ALL, "DELETE": ALL}, EVERY_ROW),
        personal=False,
    ),
    "erasure_stops": TableRules(
        dispatch=Access({"SELECT": ALL, "INSERT": ALL, "DELETE": ALL}, EVERY_ROW),
        maintenance=Access({"SELECT": ALL, "DELETE": ALL}, EVERY_ROW),
        personal=False,
    ),
    "tombstones": TableRules(
        service=Access({"SELECT": ALL}, OWN_TOMBSTONE),
        dispatch=Access({"SELECT": ALL, "INSERT": ALL, "UPDATE": ALL, "DELETE": ALL}, EVERY_ROW),
        maintenance=Access({"SELECT": ALL, "DELETE": ALL}, EVERY_ROW),
        personal=False,
    ),
    "run_queues": TableRules(
        service=_own("claimable", delete=False),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": ("claimable", "rank", "served_at", "wake_at"),
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "claims": TableRules(
        dispatch=Access({"SELECT": ("vnow",), "UPDATE": ("vnow",)}, EVERY_ROW),
        personal=False,
    ),
    "model_users": TableRules(
        service=_own(insert=False, delete=False),
        dispatch=Access(
            {"SELECT": ALL, "INSERT": ALL, "UPDATE": ("vtime", "estimate", "eligible")}, EVERY_ROW
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "model_calls": TableRules(
        service=_own("run_id", insert=False),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": (
                    *("pool", "seat", "granted_at", "taken_at", "lost_at"),
                    *("estimate", "charged", "weight"),
                ),
                "DELETE": ALL,
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "user_limits": TableRules(
        # Those of somebody who comes back are theirs again.
        service=Access(
            {"SELECT": ALL, "INSERT": ALL, "DELETE": ALL},
            OWN_ROWS,
            {"INSERT": OWN_ROWS_RETURNED, "DELETE": OWN_ROWS_ERASED},
        ),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": ("plan", "limits", "updated_at"),
                "DELETE": ALL,
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "request_rates": TableRules(
        service=_own("arrival", delete=False),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "usage_hours": TableRules(
        service=Access(
            {"SELECT": ALL, "INSERT": ALL, "UPDATE": ("runs", "tool_calls"), "DELETE": ALL},
            OWN_ROWS,
            {"DELETE": OWN_USAGE_OVER},
        ),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": (
                    *("calls", "prompt_tokens", "output_tokens", "seat_seconds"),
                    *("wait_seconds", "longest_wait_seconds"),
                ),
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
    ),
    "plans": TableRules(
        service=Access({"SELECT": ALL}, EVERY_ROW),
        dispatch=Access(
            {"SELECT": ALL, "INSERT": ALL, "UPDATE": ("limits",), "DELETE": ALL}, EVERY_ROW
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "models": TableRules(
        service=Access({"SELECT": ("model", "context", "output", "call_seconds")}, EVERY_ROW),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": ("context", "output", "vnow", "estimate", "call_seconds"),
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "model_servers": TableRules(
        dispatch=Access({"SELECT": ALL, "INSERT": ALL, "UPDATE": ("url", "capacity")}, EVERY_ROW),
        personal=False,
    ),
    "pools": TableRules(
        service=Access({"SELECT": ("pool", "model", "capacity", "state", "reason")}, EVERY_ROW),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": (
                    *("server", "model", "declared_capacity", "set_capacity", "state", "reason"),
                    *("failures", "failed_for", "failing_since", "probed_at", "resized_at"),
                ),
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "components": TableRules(
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": ("epoch", "status", "reason", "occurred_at", "version"),
                "DELETE": ALL,
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "seats": TableRules(
        dispatch=Access({"SELECT": ALL, "INSERT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "workers": TableRules(
        service=Access({"SELECT": ("worker_id", "lease_until")}, EVERY_ROW),
        dispatch=Access(
            {
                "SELECT": ALL,
                "INSERT": ALL,
                "UPDATE": ("lease_until", "draining", "ready_at"),
                "DELETE": ALL,
            },
            EVERY_ROW,
        ),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
    "alembic_version": TableRules(
        service=Access({"SELECT": ALL}, EVERY_ROW),
        dispatch=Access({"SELECT": ALL}, EVERY_ROW),
        maintenance=Access({"SELECT": ALL}, EVERY_ROW),
        personal=False,
    ),
}

_COMMANDS_WITH_CHECK = ("INSERT", "UPDATE")


def _policy(table: str, role: str, access: Access, command: str) -> str:
    rows = access.rows_of(command)
    using = "" if command == "INSERT" else f" USING ({rows})"
    check = f" WITH CHECK ({rows})" if command in _COMMANDS_WITH_CHECK else ""
    name = f"{role}_{command.lower()}"
    return f'CREATE POLICY "{name}" ON public.{table} FOR {command} TO "{role}"{using}{check}'


def _grant(table: str, role: str, command: str, columns: tuple[str, ...]) -> str:
    listed = "" if columns == ALL else f" ({', '.join(columns)})"
    return f'GRANT {command}{listed} ON public.{table} TO "{role}"'


def _role_statements(table: str, role: str, access: Access, *, secured: bool) -> Iterator[str]:
    for command, columns in access.grants.items():
        yield _grant(table, role, command, columns)
        if secured:
            yield _policy(table, role, access, command)


def table_statements(table: str, rules: TableRules, roles: Roles) -> Iterator[str]:
    """SQL that puts one table's rules in force, given that its old ones were dropped."""
    if rules.secured:
        yield f"ALTER TABLE public.{table} ENABLE ROW LEVEL SECURITY"
        yield f"ALTER TABLE public.{table} FORCE ROW LEVEL SECURITY"
    yield f"REVOKE ALL ON public.{table} FROM PUBLIC"
    for role, access in (
        (roles.service, rules.service),
        (roles.dispatch, rules.dispatch),
        (roles.maintenance, rules.maintenance),
    ):
        yield f'REVOKE ALL ON public.{table} FROM "{role}"'
        if access is not None:
            yield from _role_statements(table, role, access, secured=rules.secured)


DROP_POLICIES = """
DO $$
DECLARE p record;
BEGIN
  FOR p IN SELECT schemaname, tablename, policyname FROM pg_policies WHERE schemaname = 'public'
  LOOP
    EXECUTE format('DROP POLICY %I ON %I.%I', p.policyname, p.schemaname, p.tablename);
  END LOOP;
END $$
"""


def _schema_statements(roles: Roles) -> Iterator[str]:
    everyone = ", ".join(f'"{role}"' for role in (roles.service, roles.dispatch, roles.maintenance))
    for schema, users in (("tenant", everyone), ("dispatch", f'"{roles.dispatch}"')):
        yield f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC"
        yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {schema} FROM PUBLIC, {everyone}"
        yield f"GRANT USAGE ON SCHEMA {schema} TO {users}"
        yield f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO {users}"


def security_statements(roles: Roles) -> Iterator[str]:
    """Every statement that puts the declaration in force, in order."""
    yield DROP_POLICIES
    yield from _schema_statements(roles)
    for table, rules in RULES.items():
        yield from table_statements(table, rules, roles)
