"""Every error that the domain raises, as one tree.

An error states a fact and has a stable ``code``; it knows nothing of HTTP. ``app.api.errors``
holds the one table from these classes to statuses.

    StoaError
    ├── IdentityRejected          the assertion is missing, forged, expired, doubled
    ├── AmbiguousIdentity         several header lines claim to be the identity
    ├── IdentityUnavailable       the issuer's keys cannot be had
    ├── NotFound                  unknown, or somebody else's: the same thing to whoever asks
    │   ├── ThreadNotFound
    │   ├── RunNotFound
    │   ├── AssistantNotFound
    │   ├── CheckpointNotFound
    │   ├── MemoryNotFound
    │   ├── ApprovalNotFound
    │   ├── UserNotFound
    │   ├── PlanNotFound
    │   └── PoolNotFound
    ├── Conflict
    │   ├── ThreadAlreadyExists
    │   ├── ThreadBusy
    │   ├── ThreadTooLarge
    │   ├── NothingWaits
    │   ├── ApprovalChanged
    │   ├── ApprovalExpired
    │   ├── IdempotencyConflict
    │   ├── PlanInUse
    │   ├── UserErasing
    │   └── OwnAccount
    ├── Forbidden                 for operators only
    ├── UserUnavailable           the user is suspended, being erased, or gone
    ├── LeaseLost                 the run belongs to another worker now
    ├── RunTrespassed             a graph wrote to another thread than its run's
    ├── InvalidInput              understood, but cannot be accepted
    ├── LimitReached              one of the user's limits
    │   ├── RequestRateExceeded
    │   ├── TooManyQueuedRuns
    │   ├── TooManyThreads
    │   ├── TokenBudgetExhausted
    │   ├── MemoryFull
    │   ├── TooManyRuleChanges
    │   ├── TooManyExports
    │   ├── TooManyReturns
    │   └── TooManyStreams
    └── ServiceUnavailable
        └── TooManyRequests
"""

from __future__ import annotations

from typing import ClassVar


class StoaError(Exception):
    """Base of all domain errors.

    ``code`` is stable and part of the API. The message is written for a person and never
    contains secrets, other people's data or internals.
    """

    code: ClassVar[str] = "internal"
    message: ClassVar[str] = "Something went wrong."

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.message)


class IdentityRejected(StoaError):
    """The caller's identity could not be established. Says nothing about why."""

    code = "unauthenticated"
    message = "Sign in to use this service."


class AmbiguousIdentity(StoaError):
    """More than one header line claims to carry the identity."""

    code = "ambiguous_identity"
    message = "The request carries more than one identity."


class IdentityUnavailable(StoaError):
    """The issuer's keys cannot be fetched and the known ones are too old."""

    code = "identity_unavailable"
    message = "Sign-in cannot be checked right now. Try again shortly."


class NotFound(StoaError):
    """The thing does not exist for this user."""

    code = "not_found"
    message = "Not found."


class UpstreamFailed(StoaError):
    """What a request needs of another service was not to be had of it."""

    code = "upstream_failed"
    message = "Another service that this needs has failed."


class ThreadNotFound(NotFound):
    """No such thread for this user."""

    code = "thread_not_found"
    message = "There is no such thread."


class RunNotFound(NotFound):
    """No such run on this thread for this user."""

    code = "run_not_found"
    message = "There is no such run."


class AssistantNotFound(NotFound):
    """No such assistant or graph."""

    code = "assistant_not_found"
    message = "There is no such assistant."


class CheckpointNotFound(NotFound):
    """No such checkpoint in this thread."""

    code = "checkpoint_not_found"
    message = "There is no such checkpoint."


class MemoryNotFound(NotFound):
    """No such memory of this user's."""

    code = "memory_not_found"
    message = "There is no such memory."


class ApprovalNotFound(NotFound):
    """No such question to this user."""

    code = "approval_not_found"
    message = "There is no such approval."


class UserNotFound(NotFound):
    """Nobody has this id."""

    code = "user_not_found"
    message = "There is no such user."


class PlanNotFound(NotFound):
    """No such plan."""

    code = "plan_not_found"
    message = "There is no such plan."


class PoolNotFound(NotFound):
    """No such pool, or the settings name it no more."""

    code = "pool_not_found"
    message = "There is no such pool."


class Conflict(StoaError):
    """The request contradicts the present state."""

    code = "conflict"
    message = "This contradicts the present state."


class ThreadAlreadyExists(Conflict):
    """A thread with this id exists and the caller asked to be told."""

    code = "thread_exists"
    message = "This thread exists already."


class ThreadBusy(Conflict):
    """A run holds the thread, or it has changed since it was looked at."""

    code = "thread_busy"
    message = "This thread is busy. Wait until its run has ended, or cancel it."


class ThreadTooLarge(Conflict):
    """A thread holds as much as one may."""

    code = "thread_too_large"
    message = "This thread is too large for something of this length. Begin a new one."


class NothingWaits(Conflict):
    """No run of the thread waits for a person, or not for this answer any more."""

    code = "nothing_waits"
    message = "Nothing on this thread waits for this answer. It may have been given already."


class ApprovalChanged(Conflict):
    """What was decided on is not what is asked."""

    code = "approval_changed"
    message = "This is not the call that waits. Look at it again, then decide."


class ApprovalExpired(Conflict):
    """Nobody decided in time."""

    code = "approval_expired"
    message = "The time to decide on this is over."


class IdempotencyConflict(Conflict):
    """An Idempotency-Key came again with another request."""

    code = "idempotency_conflict"
    message = "This Idempotency-Key was used with another request."


class PlanInUse(Conflict):
    """A plan that somebody has cannot be deleted."""

    code = "plan_in_use"
    message = "Somebody has this plan. Give them another one first."


class UserErasing(Conflict):
    """What is asked for somebody cannot be, since they are being erased."""

    code = "user_erasing"
    message = "This account is being erased."


class OwnAccount(Conflict):
    """What an operator may do to everybody but themselves."""

    code = "own_account"
    message = "This is your own account. Another operator has to do this."


class Forbidden(StoaError):
    """Only operators may ask this."""

    code = "forbidden"
    message = "Only operators may do this."


class UserUnavailable(StoaError):
    """The user is being erased, suspended, or no longer exists."""

    code = "user_unavailable"
    message = "This account cannot be used."


class LeaseLost(StoaError):
    """The run's fence has moved on: another worker owns it, or it is gone."""

    code = "lease_lost"
    message = "This run belongs to another worker."


class RunTrespassed(StoaError):
    """A graph tried to write to a thread that its run does not hold."""

    code = "graph_trespassed"
    message = "The assistant tried to write to another conversation and was stopped."


class InvalidInput(StoaError):
    """Well-formed, but not acceptable."""

    code = "invalid_input"
    message = "The request cannot be accepted."


class ServiceUnavailable(StoaError):
    """Something the request needs is not available now."""

    code = "service_unavailable"
    message = "The service cannot do this right now."


class TooManyRequests(ServiceUnavailable):
    """The user has more requests under way than one person may."""

    code = "too_many_requests"
    message = "Too many requests at once. Wait for some to be answered."


class LimitReached(StoaError):
    """The user has used as much as they may of something."""

    code = "limit_reached"
    message = "A limit of this account is reached."

    def __init__(self, limit: str, *, retry_seconds: float | None = None) -> None:
        super().__init__()
        self.limit = limit
        """The limit's name, as ``/me/limits`` has it."""
        self.retry_seconds = retry_seconds
        """When to try again; None where waiting alone does not help."""


class RequestRateExceeded(LimitReached):
    """More requests in a short time than one person may make."""

    code = "request_rate_exceeded"
    message = "Too many requests in a short time. Wait a moment."


class TooManyQueuedRuns(LimitReached):
    """As many of the user's runs wait as may."""

    code = "too_many_queued_runs"
    message = "Too many runs wait already. Wait for some to begin, or cancel some."


class TooManyThreads(LimitReached):
    """The user keeps as many threads as they may."""

    code = "too_many_threads"
    message = "There are as many conversations as this account may keep. Delete some."


class TokenBudgetExhausted(LimitReached):
    """The user has used the tokens of this day or month."""

    code = "token_budget_exhausted"
    message = "The tokens of this account are used up for now."


class MemoryFull(LimitReached):
    """The user's store holds as much as it may."""

    code = "memory_full"
    message = "The memory of this account is full. Delete something from it."


class TooManyRuleChanges(LimitReached):
    """The user has changed when they are asked as often as one may in an hour."""

    code = "too_many_rule_changes"
    message = "These rules were changed too often. Wait a while before you change them again."


class TooManyExports(LimitReached):
    """The user has taken everything along as often as one may in an hour."""

    code = "too_many_exports"
    message = "Everything was exported too often. Wait a while before you do it again."


class TooManyReturns(LimitReached):
    """The person has left, and come back, as often as one may in a day."""

    code = "too_many_returns"
    message = "This account was erased too often today. You can come back tomorrow."


class TooManyStreams(LimitReached):
    """The user has as many streams open as one person may."""

    code = "too_many_streams"
    message = "Too many streams are open. Close one and try again."
