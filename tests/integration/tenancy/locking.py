"""The database's functions, who calls each with what, and the order in which locks are taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from app.runs.runs import IdempotencyKey
from tenancy.checkpoints.batch import CheckpointBatch
from tenancy.principal import ClaimedRun
from tests.support.postgres import Role
from tests.support.tenancy import (
    ASSISTANT,
    MODEL,
)

MEMORY = UUID("00000000-0000-4000-8000-0000000e3035")
KEY = IdempotencyKey("POST /threads/t/runs", "key", b"body")


@dataclass(frozen=True)
class Call:
    """A function of the database's, and who calls it with what."""

    role: Role
    statement: str
    arguments: tuple[Any, ...] = ()
    bound: UUID | None = None
    """Whom the caller binds before, where the function leaves that to it."""


@dataclass(frozen=True)
class Scene:
    """Alice's thread: a run that a worker holds and one that waits; another thread of hers.

    In two more, runs wait for her.
    """

    user: UUID
    thread: UUID
    run: ClaimedRun
    worker: UUID
    runs: list[UUID]

    def calls(self) -> dict[str, Call]:
        """Every function that writes, with what makes it take all the locks that it can."""
        return {
            **self._of_a_person(),
            **self._of_connections(),
            **self._of_a_worker(),
            **self._of_everybody(),
            **self.of_leaving(),
        }

    def _of_a_person(self) -> dict[str, Call]:
        def accept(strategy: str, key: str | None) -> Call:
            about = (self.user, self.thread, uuid4(), ASSISTANT, "agent", "{}", "{}", "t", True)
            known = (KEY.route, key, b"body") if key else (None, None, None)
            return _tenant("accept_run", *about, strategy, 0, 0.0, "{}", *known)

        def cancel(action: str, thread: UUID | None) -> Call:
            return _tenant("cancel_runs", self.user, thread, None, None, action)

        def resume(*known: Any) -> Call:
            waiting = (self.user, self.thread, self.run.run_id, self.run.fence)
            return _tenant("resume_run", *waiting, "{}", uuid4(), *known)

        return {
            **self._of_approvals(),
            "resume_run": resume(None, None, None),
            "resume_run with a key": resume(KEY.route, "new", b"body"),
            **{f"accept_run {how}": accept(how, None) for how in ("enqueue", "reject")},
            **{f"accept_run {how}": accept(how, "new") for how in ("interrupt", "rollback")},
            "accept_run again": accept("enqueue", KEY.key),
            "cancel_runs interrupt": cancel("interrupt", None),
            "cancel_runs rollback": cancel("rollback", self.thread),
            "write_state": _tenant("write_state", self.user, "c", *self._rows()),
            "drop_idempotency_keys": _tenant("drop_idempotency_keys", self.user, 100),
            "prune_deltas": _tenant("prune_deltas", self.user, self.run.run_id, 100),
            "drop_log": _tenant("drop_log", self.user, self.run.run_id, 0.0, 100),
            "drop_run": _tenant("drop_run", self.user, self.run.run_id, 0.0, 100),
            "expire_thread": _tenant("expire_thread", self.user, self.thread, 0.0),
            "prune_checkpoints": _tenant("prune_checkpoints", self.user, self.thread, 0.0, 100),
            "drop_usage": _tenant("drop_usage", self.user, 0.0, 100),
            "drop_audit_texts": _tenant("drop_audit_texts", self.user, 0.0, 100),
            "sign_in": _tenant("sign_in", uuid4(), "somebody", "Some", None),
            "begin_write": _tenant("begin_write", self.user),
            "may_export": _tenant("may_export", self.user),
            "begin_export": _tenant("begin_export", self.user),
            "delete_run": self._bound("delete_run", self.run.run_id),
            "delete_thread": self._bound("delete_thread", 5000),
            "delete_thread large": self._bound("delete_thread", 0),
            "delete_thread_rows": _tenant("delete_thread_rows", self.user, self.thread, 100),
            "edit_memory": _tenant("edit_memory", self.user, MEMORY, "corrected", "{}"),
            "remember": _tenant("remember", self.user, None, None, MEMORY, "a fact", "{}"),
            "forget": _tenant("forget", self.user, None, None, None),
            "drop_expired_items": _tenant("drop_expired_items", self.user, 100),
        }

    def _of_approvals(self) -> dict[str, Call]:
        def decide(approval: UUID, *known: Any) -> Call:
            decisions = [
                {
                    "approval_id": str(approval),
                    "decision": "approve",
                    "arguments_sha256": "00",
                }
            ]
            about = (self.user, WAITING, json.dumps(decisions), None, uuid4())
            return _tenant("decide_approvals", *about, *known)

        return {
            "decide_approvals": decide(ASKED, None, None, None),
            "decide_approvals with a key": decide(ASKED, KEY.route, "new", b"body"),
            "decide_approvals on one that is closed": decide(CLOSED, None, None, None),
            "expire_approvals": _tenant("expire_approvals", self.user, OVERDUE),
            "refuse_decision": _tenant("refuse_decision", self.user, ASKED, "edit", "invalid"),
        }

    def _of_connections(self) -> dict[str, Call]:
        def mine(function: str, *arguments: Any) -> Call:
            return _tenant(function, self.user, *arguments)

        now = datetime.now(UTC)
        noted = (1, "available", None, "[]", "v", "{}")
        return {
            "add_data_key": mine("add_data_key", 3, "k", b""),
            "rewrap_data_key": mine("rewrap_data_key", 1, b"", "k2", b"w"),
            "reseal_credential": mine("reseal_credential", CONNECTION, SEALED[1], SEALED[2]),
            "drop_unused_data_keys": mine("drop_unused_data_keys"),
            "destroy_data_keys": mine("destroy_data_keys"),
            "add_connection": mine("add_connection", "new", "https://a.b", "none", None, 20),
            "store_connection": mine("store_connection", "tickets", False),
            "say_approval": mine("say_approval", "tickets", False, '{"*": "always"}'),
            "want_check": mine("want_check", "own", True, True),
            "drop_credential disconnect": mine("drop_credential", "own", True, "disconnect"),
            "drop_credential remove": mine("drop_credential", "own", True, "remove"),
            "keep_credential": mine(
                "keep_credential", CONNECTION, "oauth", SEALED[2], 60.0, None, False
            ),
            "begin_refresh": mine("begin_refresh", CONNECTION, 1, 60.0),
            "end_refresh": mine("end_refresh", CONNECTION, 1, True),
            "store_listing": mine("store_listing", "own", True, *noted),
            "finish_check": mine("finish_check", CONNECTION, now, *noted),
            "begin_authorization": mine(
                "begin_authorization", "own", True, b"new", SEALED[2], 60.0, 1
            ),
            "take_authorization": mine("take_authorization", b"s"),
            "drop_expired_authorizations": mine("drop_expired_authorizations", 100),
            "claim_checks": _dispatch("claim_checks", 5, 5, 60.0),
        }

    def _of_a_worker(self) -> dict[str, Call]:
        claim = (self.user, self.run.run_id, self.run.fence)
        call = (*claim, self.thread, "message", "call")
        events = (["values"], [b"{}"], [None], [None])
        return {
            "begin_attempt": _tenant("begin_attempt", *claim, self.worker),
            "append_events": _tenant("append_events", *claim, 50, *events),
            "write_checkpoints": _tenant("write_checkpoints", *claim, *self._rows()),
            "begin_effect": _tenant(
                *("begin_effect", *call, "server", None, None, "tool", b"", True, 0.0),
                *(uuid4(), b"", "policy", b"", "", 0, uuid4()),
            ),
            "settle_doubt": _tenant("settle_doubt", *call, uuid4()),
            "record_late_outcome": _tenant("record_late_outcome", *call, uuid4(), "done", "{}"),
            "end_effect": _tenant("end_effect", *call, uuid4(), "done", "{}"),
            "settle_run": _tenant("settle_run", *claim, "success", None, None, 50, *events),
            "settle_run with questions": _tenant(
                "settle_run", *claim, "waiting", None, None, 50, *events, 0, QUESTIONS, 60.0
            ),
            "remember in a run": _tenant("remember", *claim, MEMORY, "a fact", "{}"),
            "forget in a run": _tenant("forget", *claim, None),
            "keep_embeddings": _tenant(
                "keep_embeddings", *claim, "{}", "m", [MEMORY], ["a fact"], ["{1}"]
            ),
        }

    def _of_everybody(self) -> dict[str, Call]:
        claim = (self.user, self.run.run_id, self.run.fence)
        return {
            "register_worker": _dispatch("register_worker", uuid4(), "host", 1, None, 60.0),
            "renew_lease": _dispatch("renew_lease", self.worker, 60.0),
            "claim_runs": _dispatch("claim_runs", self.worker, 10, "", "{}"),
            "reap_expired_leases": _dispatch("reap_expired_leases"),
            "release_run": _dispatch("release_run", *claim, True),
            "release_runs_but": _dispatch("release_runs_but", self.worker, []),
            "drain_worker": _dispatch("drain_worker", self.worker),
            "retire_worker": _dispatch("retire_worker", self.worker),
            "take_back_run": _dispatch("take_back_run", *claim),
            "remove_worker": _dispatch("remove_worker", self.worker),
            **self._of_the_scheduler(),
        }

    def _of_the_scheduler(self) -> dict[str, Call]:
        asking = (self.run.run_id, self.run.fence, self.worker, MODEL, "{}")
        acting = (self.user, None, "a test")
        return {
            "take_seat": _dispatch("take_seat", self.user, uuid4(), *asking),
            "take_up": _dispatch("take_up", self.user, SEATED, "{}"),
            "settle_call": _dispatch("settle_call", self.user, SEATED, MODEL, 1, 1, "unreachable"),
            "serve_model": _dispatch("serve_model", MODEL),
            "tend_seats": _dispatch("tend_seats", 0.0, 0.0),
            "declare_pools": _dispatch("declare_pools", POOLS),
            "set_capacity": _dispatch("set_capacity", "one", 3, *acting),
            "pools_to_probe": _dispatch("pools_to_probe", 0.0, 0.0),
            "reopen_pool": _dispatch("reopen_pool", "two"),
            "pool_checked": _dispatch("pool_checked", "two", self.worker, "unreachable"),
            "publish_worker": _dispatch("publish_worker", self.worker),
            "look_for_workers": _dispatch("look_for_workers"),
            "set_limits": _dispatch("set_limits", self.user, None, '{"seats": 2}', *acting),
            "clear_limits": _dispatch("clear_limits", self.user, *acting),
            "set_plan": _dispatch("set_plan", "default", "{}", *acting),
            "delete_plan": _dispatch("delete_plan", "default", *acting),
            "note_look": _dispatch("note_look", self.user, None, *acting),
            "note_refusal": _dispatch("note_refusal", *acting),
            "note_deed": _dispatch("note_deed", "done", None, *acting),
            "put_in_order": _dispatch("put_in_order", 0.0, "{}"),
            "admit_request": _tenant("admit_request", self.user, '{"requests_per_minute": 60}'),
            "begin_growth": _tenant("begin_growth", self.user),
        }

    def of_leaving(self) -> dict[str, Call]:
        """What begins, leads and ends an erasure."""
        job = (ERASURE, 1)
        return {
            "begin_erasure": _dispatch("begin_erasure", self.user, "person"),
            "await_writers": _dispatch("await_writers", self.user),
            "set_user_state": _dispatch("set_user_state", self.user, "active", None, "root", "r"),
            "claim_erasure": _dispatch("claim_erasure", 60.0),
            "keep_erasure": _dispatch("keep_erasure", *job, 60.0),
            "release_erasure": _dispatch("release_erasure", *job, 60.0, "failed"),
            "advance_erasure": _dispatch(
                "advance_erasure", *job, "stop", '{"deleted": {"runs": 1}}'
            ),
            "note_stop": _dispatch("note_stop", ERASURE, self.worker, 1),
            "end_runs": _dispatch("end_runs", self.user, 100),
            "record_tombstones": _dispatch("record_tombstones", ERASURE, b"", [b"h"], "k", 60.0),
            "note_usage": _dispatch("note_usage", *job),
            "erase_rows": _tenant("erase_rows", self.user, 100, None),
            "erase_user": _tenant("erase_user", self.user),
        }

    def _bound(self, function: str, argument: Any) -> Call:
        return replace(_tenant(function, self.user, self.thread, argument), bound=self.user)

    def _rows(self) -> tuple[Any, ...]:
        """A checkpoint, and a task's write that is there already, so that it is replaced."""
        return rows(self.thread, uuid4().hex, "c")

    def runs_places(self) -> Mapping[str, str]:
        """How a stranger holds each of the runs."""
        return {
            f"run {n}": f"SELECT 1 FROM runs WHERE run_id = '{run}' FOR UPDATE"
            for n, run in enumerate(self.runs, 1)
        }

    def places(self) -> Mapping[str, str]:
        """The order: how a stranger holds what is at each place."""
        return {
            "user": f"SELECT 1 FROM users WHERE user_id = '{self.user}' FOR UPDATE",
            "erasures": "SELECT 1 FROM erasures FOR UPDATE",
            "key": f"SELECT 1 FROM idempotency_keys WHERE key = '{KEY.key}' FOR UPDATE",
            "thread": f"SELECT 1 FROM threads WHERE user_id = '{self.user}' FOR UPDATE",
            "claims": "SELECT pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0))",
            "worker": f"SELECT 1 FROM workers WHERE worker_id = '{self.worker}' FOR UPDATE",
            **self.runs_places(),
            **MODELS,
            **WHAT_BELONGS_TO_A_MODEL,
            "servers": AFTER_A_MODEL["servers"],
            **WHAT_BELONGS_TO_A_RUN,
            "queues": AFTER_A_MODEL["queues"],
            **WHAT_BELONGS_TO_A_CONNECTION,
        }


WHAT_BELONGS_TO_A_RUN = {
    table: f"SELECT 1 FROM {table} FOR UPDATE"
    for table in (
        "run_attempts",
        "run_events",
        "checkpoints",
        "checkpoint_blobs",
        "checkpoint_writes",
        "approvals",
    )
}
"""One place: who gets there holds the run, so that two can only meet at the run itself."""

MODELS = {"models": "SELECT 1 FROM models ORDER BY model FOR UPDATE"}
WHAT_BELONGS_TO_A_MODEL = {
    "users of a model": "SELECT 1 FROM model_users FOR UPDATE",
    "calls": "SELECT 1 FROM model_calls FOR UPDATE",
}
"""One place too: who gets there holds the model, or holds no server and no queue."""
AFTER_A_MODEL = {
    "servers": "SELECT 1 FROM model_servers ORDER BY server FOR UPDATE",
    "queues": "SELECT 1 FROM run_queues FOR UPDATE",
}

WHAT_BELONGS_TO_A_CONNECTION = {
    "data keys": "SELECT 1 FROM data_keys ORDER BY version FOR UPDATE",
    "connections": "SELECT 1 FROM connections FOR UPDATE",
    "authorizations": "SELECT 1 FROM authorizations FOR UPDATE",
}

ERASURE = UUID("00000000-0000-4000-8000-00000000e4a5")
CONNECTION = UUID("00000000-0000-4000-8000-000000000c02")
"""Of a server of the person's own, by an authorization; another one is under way."""
SEALED = {version: b"\1" + version.to_bytes(4, "big") + bytes(28) for version in (1, 2)}
"""Under the older and the newest of two data keys."""

POOLS = json.dumps(
    [
        {
            "pool": name,
            "server": name,
            "url": "http://server.test",
            "server_capacity": 2,
            "model": MODEL,
            "capacity": 1,
            "context": 1000,
            "output": 500,
        }
        for name in ("one", "two")
    ]
)
WAITING, OVERDUE, ASKED, CLOSED = [UUID(int=number) for number in range(0xA50, 0xA54)]
"""A run that waits for its person, one that has done so for too long; what the first asks, and what
it has asked before."""
QUESTIONS = json.dumps(
    [
        {
            "interrupt_id": "i",
            "kind": "call",
            "message_id": "m",
            "tool_call_id": "c",
            "server": "own",
            "tool": "t",
            "arguments": {},
            "arguments_sha256": "00",
            "asked": {},
            "decisions": ["approve"],
        }
    ]
)
SEATED = UUID("00000000-0000-4000-8000-0000000005ea")
"""A call that has a seat; another one of the same run waits."""

PARTS = {
    *("publish_available", "publish_failure", "publish_pool", "pool_changed", "connection_stands"),
    *("begin_upkeep", "hold_data_key", "hold_connection", "note_standing"),
    "drop_authorizations",
    *("unbound", "user_id", "identity", "may_become", "guard_transition", "record_attempt"),
    *("hold_fence", "take_idempotency_key", "roll_back", "cancel_open_runs", "end_as_cancelled"),
    *("insert_checkpoints", "insert_events"),
    *("audit", "audit_approval", "keep_record", "ask_person", "go_on", "supersede_approvals"),
    "take_back_questions",
    *("call_up", "run_changed", "user_changed", "leave_queues", "require_room", "require_threads"),
    *("count_usage", "count_tool_calls", "hold_models", "free_seat", "grant_seats", "weigh_user"),
    *("end_overdue", "note_outcome", "serve_anew", "limits_changed", "require_memory"),
    *("begin_origin", "index_item", "memory_prefix", "as_uuid", "memories_of"),
    *(
        "record_refusal",
        "missing_approval",
        "changed_since",
        "close_answered_doubts",
        "late_outcome",
    ),
    "connection_of_call",
    *("reference_of", "known_reference_of", "begin_act", "audit_act"),
    *("begin_erasing", "erase_batch", "make_user", "keep_texts"),
}
"""Called by the others only, in whose transactions they are tried."""

READERS = {
    *("sealed_under", "read_data_keys", "data_key_age", "read_older_credentials"),
    *("vault_overview", "users_to_rekey", "read_connections", "read_connection"),
    *("read_credential",),
    *("begin_read", "read_checkpoint", "read_log", "inspect_run", "count_thread_rows"),
    *("find_effect", "find_permission", "decisions_of", "memory_state", "find_expired_approvals"),
    *("held_runs", "find_workers", "find_lost_runs", "rank_of", "head_of", "has_room"),
    "unavailable_of",
    *(
        "highest_cost",
        "expected_cost",
        "virtual",
        "open_seats",
        "terms_of",
        "has_free_seat",
        "neighbours",
    ),
    *("overdue_calls", "read_pools", "check_agreement", "disagreeing_calls", "unserved_calls"),
    *("disagreeing_queues", "limits_of", "tokens_since", "exhausted_budget", "limits_set"),
    *("plans_set", "users_of_plan", "iso", "limit_use", "memory_bytes", "waiting_runs"),
    *("waiting_calls", "models_of", "read_standing", "run_places", "call_places", "seats_in_use"),
    "call_seconds",
    *("usage_range", "usage_buckets", "usage_json", "read_usage", "usage_overview", "lag_of"),
    *("lines", "model_facts", "pool_facts", "queue_overview", "scheduler_facts"),
    *("asking_runs", "question_facts", "worker_facts"),
    *("person_json", "person_sizes", "people", "person", "used_since"),
    *("read_record", "read_own_record"),
    *("waiting_longest", "why_not_claimed", "why_not_seated"),
    *("stems", "words_of", "terms_asked", "similarity", "ranked_items", "recall"),
    *("memories_to_embed", "has_memories", "list_memories", "count_memories"),
    *("folded", "find_titles", "find_mentioned"),
    *("own_tables", "begin_taking", "reading_of", "read_own_rows", "measure_own_rows"),
    "find_prunable",
    *("read_components", "has_worker", "standing_rank"),
    *("own_reference", "salted", "identity_hashes", "has_tombstone", "is_erasing"),
    *("find_user", "admit_return"),
    *("personal_tables", "count_rows", "added_up", "erasures_to_stop", "is_quiet", "spent_by"),
}
"""These hold nothing."""


def rows(thread: UUID, checkpoint_id: str, written_on: str) -> tuple[Any, ...]:
    """LangGraph's rows as the functions take them, from the thread on."""
    batch = CheckpointBatch(threads={str(thread)})
    batch.checkpoints["", checkpoint_id] = ("", checkpoint_id, None, "{}", "{}")
    batch.blobs[1,] = ("", "words", checkpoint_id, "empty", b"")
    batch.writes[1,] = ("", written_on, "task", "", -1, "__error__", "null", b"", True)
    return batch.arguments()


def _tenant(function: str, *arguments: Any) -> Call:
    return Call("service", statement_of(f"tenant.{function}", arguments), arguments)


def _dispatch(function: str, *arguments: Any) -> Call:
    return Call("dispatch", statement_of(f"dispatch.{function}", arguments), arguments)


def statement_of(function: str, arguments: tuple[Any, ...]) -> str:
    return (
        f"SELECT count(*) FROM {function}({', '.join(f'${n + 1}' for n in range(len(arguments)))})"
    )
