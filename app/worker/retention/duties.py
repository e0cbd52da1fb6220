"""What is kept for a while only, and for how long, as the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.erasure.tombstones import tombstone_folder
from app.worker.retention.batches import Duty, OwnedDuty, SharedDuty
from app.worker.retention.tombstone_files import TombstoneFiles
from tenancy.database import due

if TYPE_CHECKING:
    from app.settings import Settings

_DAY = 24 * 3600.0
_SLACK = 1 / 30

_PRUNE_DELTAS = "SELECT dropped, done FROM tenant.prune_deltas($1, $2, $3)"
_DROP_LOG = "SELECT dropped, done FROM tenant.drop_log($1, $2, $3, $4)"
_DROP_RUN = "SELECT dropped, done FROM tenant.drop_run($1, $2, $3, $4)"
_PRUNE_CHECKPOINTS = "SELECT dropped, done FROM tenant.prune_checkpoints($1, $2, $3, $4)"
_EXPIRE_THREAD = "SELECT dropped, done FROM tenant.expire_thread($1, $2, $3)"
_DELETE_THREAD_ROWS = "SELECT dropped, done FROM tenant.delete_thread_rows($1, $2, $3)"
_DROP_IDEMPOTENCY_KEYS = "SELECT dropped, done FROM tenant.drop_idempotency_keys($1, $2)"
_DROP_EXPIRED_ITEMS = "SELECT dropped, done FROM tenant.drop_expired_items($1, $2)"
_DROP_EXPIRED_AUTHORIZATIONS = (
    "SELECT dropped, done FROM tenant.drop_expired_authorizations($1, $2)"
)
_DROP_AUDIT_TEXTS = "SELECT dropped, done FROM tenant.drop_audit_texts($1, $2, $3)"
_DROP_USAGE = "SELECT dropped, done FROM tenant.drop_usage($1, $2, $3)"


def duties(settings: Settings) -> list[Duty]:
    """Everything that is to be dropped, in the order in which it is looked after."""
    return [
        *_of_runs(settings),
        *_of_threads(settings),
        OwnedDuty("idempotency_keys", due.IDEMPOTENCY_KEYS, _DROP_IDEMPOTENCY_KEYS),
        OwnedDuty("store_items", due.STORE_ITEMS, _DROP_EXPIRED_ITEMS),
        OwnedDuty("authorizations", due.AUTHORIZATIONS, _DROP_EXPIRED_AUTHORIZATIONS),
        *_of_the_record(settings),
    ]


def _of_runs(settings: Settings) -> list[Duty]:
    pieces, logs = settings.delta_retention_seconds, settings.event_retention_seconds
    runs = settings.run_retention_seconds
    found: list[Duty] = [
        OwnedDuty("message_pieces", due.MESSAGE_PIECES, _PRUNE_DELTAS, (pieces,)),
    ]
    if logs:
        found.append(OwnedDuty("events", due.LOGS, _DROP_LOG, (logs,), (logs,)))
    if runs:
        found.append(OwnedDuty("runs", due.RUNS, _DROP_RUN, (runs,), (runs,)))
    return found


def _of_threads(settings: Settings) -> list[Duty]:
    states, idle = settings.checkpoint_retention_seconds, settings.thread_idle_seconds
    found: list[Duty] = []
    if states:
        # A thread that is used every day is looked at once in a while, not at each turn's end.
        found.append(
            OwnedDuty(
                *("checkpoints", due.STATES, _PRUNE_CHECKPOINTS),
                (states + min(states * _SLACK, _DAY),),
                (states,),
            )
        )
    found.append(
        OwnedDuty(
            *("expired_threads", due.EXPIRED_THREADS, _EXPIRE_THREAD, ()),
            (idle or None,),
            in_batches=False,
        )
    )
    if idle:
        found.append(
            OwnedDuty(
                *("idle_threads", due.IDLE_THREADS, _EXPIRE_THREAD),
                (idle,),
                (idle,),
                in_batches=False,
            )
        )
    found.append(OwnedDuty("deleted_threads", due.DELETED_THREADS, _DELETE_THREAD_ROWS))
    return found


def _of_the_record(settings: Settings) -> list[Duty]:
    folder = tombstone_folder(settings)
    record, usage = settings.audit_retention_seconds, settings.usage_retention_seconds
    found: list[Duty] = []
    if record:
        found += [
            OwnedDuty("audit_texts", due.AUDIT_TEXTS, _DROP_AUDIT_TEXTS, (record,), (record,)),
            SharedDuty("audit", due.AUDIT, (record,)),
        ]
    if usage:
        found.append(OwnedDuty("usage", due.USAGE, _DROP_USAGE, (usage,), (usage,)))
    return [
        *found,
        SharedDuty("tombstones", due.TOMBSTONES),
        SharedDuty("erasure_stops", due.ERASURE_STOPS),
        SharedDuty("erasures", due.ERASURES, (settings.tombstone_seconds,)),
        *([] if folder is None else [TombstoneFiles(folder)]),
    ]
