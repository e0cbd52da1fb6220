"""What may be done about what an earlier process left: nothing without proof."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import uuid4

import psutil
import pytest
from structlog.testing import capture_logs

from tenancy.reconcile.facts import (
    Disposition,
    Facts,
    Found,
    Kind,
    Lease,
    Liveness,
    Outcome,
    Process,
    ProcessName,
)
from tenancy.reconcile.processes import look_for, process_start
from tenancy.reconcile.rules import RULES, SEEN, classify, may_be_taken_back
from tenancy.reconcile.summary import Finding, Summary, log_summary

EVERYTHING = [Facts(*facts) for facts in product(Kind, Lease, Process, Outcome)]


def can_be(facts: Facts) -> bool:
    """Nothing is tried on a lease that lives, and always on one that doesn't.

    A child has no lease, but a worker that is gone or not; once it is gone itself, nobody can be
    quicker than that. Nobody has one locked.
    """
    is_tried = facts.outcome is not Outcome.NOT_TRIED
    if facts.kind is not Kind.CHILD:
        return is_tried == (facts.lease is not Lease.LIVE)
    if facts.outcome is Outcome.HELD:
        return False
    if facts.process is Process.GONE:
        return facts.outcome in {Outcome.DONE, Outcome.FAILED}
    return is_tried == (facts.process is Process.HERE and facts.lease is not Lease.LIVE)


POSSIBLE = [facts for facts in EVERYTHING if can_be(facts)]
LEASED = [facts for facts in POSSIBLE if facts.kind is not Kind.CHILD]
CHILDREN = [facts for facts in POSSIBLE if facts.kind is Kind.CHILD]
ENDED = (Disposition.STOPPED, Disposition.REPAIRED)
RAISED = (Outcome.DONE, Outcome.OVERTAKEN)


class TestTheTableOfRules:
    @pytest.mark.parametrize("facts", POSSIBLE, ids=str)
    def test_has_exactly_one_rule_for_whatever_is_found(self, facts: Facts) -> None:
        assert sum(rule.covers(facts) for rule in RULES) == 1
        assert classify(facts).why

    def test_has_none_for_what_cannot_be(self) -> None:
        for facts in (each for each in EVERYTHING if not can_be(each)):
            with pytest.raises(ValueError, match="no rule"):
                classify(facts)

    def test_has_no_rule_that_is_never_used(self) -> None:
        assert all(any(rule.covers(facts) for facts in POSSIBLE) for rule in RULES)

    @pytest.mark.parametrize("facts", POSSIBLE, ids=str)
    def test_calls_nobody_dead_without_proof(self, facts: Facts) -> None:
        if classify(facts).liveness is Liveness.DEAD:
            lease_over = facts.lease is not Lease.LIVE and facts.outcome in RAISED
            assert lease_over or facts.process is Process.GONE

    def test_lets_nothing_be_tried_without_proof(self) -> None:
        for kind, lease, process in product(Kind, Lease, Process):
            if may_be_taken_back(kind, lease, process):
                is_gone = kind is Kind.CHILD and process is Process.GONE
                assert lease is not Lease.LIVE or is_gone

    @pytest.mark.parametrize("facts", CHILDREN, ids=str)
    def test_ends_a_child_only_where_it_runs_here_and_its_worker_is_gone(
        self, facts: Facts
    ) -> None:
        is_orphan = facts.process is Process.HERE and facts.lease is not Lease.LIVE
        is_ended = classify(facts).disposition is Disposition.STOPPED
        assert is_ended == (is_orphan and facts.outcome is Outcome.DONE)

    @pytest.mark.parametrize("facts", LEASED, ids=str)
    def test_changes_only_what_was_taken_back_under_a_lease_that_is_over(
        self, facts: Facts
    ) -> None:
        changed = classify(facts).disposition in ENDED
        assert changed == (facts.lease is not Lease.LIVE and facts.outcome is Outcome.DONE)

    @pytest.mark.parametrize("facts", POSSIBLE, ids=str)
    def test_takes_no_run_away(self, facts: Facts) -> None:
        if facts.kind is Kind.RUN:
            assert classify(facts).disposition is not Disposition.STOPPED

    @pytest.mark.parametrize("facts", LEASED, ids=str)
    def test_finds_nothing_wrong_only_where_a_lease_lives_and_no_process_is_missing(
        self, facts: Facts
    ) -> None:
        in_order = facts.lease is Lease.LIVE and facts.process is not Process.GONE
        assert classify(facts).in_order == in_order

    def test_says_of_each_kind_of_process_what_it_shows(self) -> None:
        assert dict(SEEN) == {
            Process.HERE: (None, Liveness.ALIVE),
            Process.GONE: (Found.ABSENT, Liveness.DEAD),
            Process.UNREADABLE: (Found.OTHER_ERROR, Liveness.ALIVE),
            Process.ELSEWHERE: (Found.NO_HANDLE, Liveness.REMOTE),
            Process.UNNAMED: (Found.NO_HANDLE, Liveness.UNKNOWN),
        }


W, R, C = Kind.WORKER, Kind.RUN, Kind.CHILD
CASES: dict[str, tuple[Facts, Found | None, Liveness, Disposition]] = {
    "a worker of this host that works": (
        Facts(W, Lease.LIVE, Process.HERE, Outcome.NOT_TRIED),
        *(None, Liveness.ALIVE, Disposition.PRESERVED),
    ),
    "a killed worker whose lease is not over": (
        Facts(W, Lease.LIVE, Process.GONE, Outcome.NOT_TRIED),
        *(Found.ABSENT, Liveness.DEAD, Disposition.PRESERVED),
    ),
    "a worker of another host": (
        Facts(W, Lease.LIVE, Process.ELSEWHERE, Outcome.NOT_TRIED),
        *(Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED),
    ),
    "a worker whose process nobody wrote down": (
        Facts(W, Lease.LIVE, Process.UNNAMED, Outcome.NOT_TRIED),
        *(Found.NO_HANDLE, Liveness.UNKNOWN, Disposition.PRESERVED),
    ),
    "a worker that we may not look at": (
        Facts(W, Lease.LIVE, Process.UNREADABLE, Outcome.NOT_TRIED),
        *(Found.OTHER_ERROR, Liveness.ALIVE, Disposition.PRESERVED),
    ),
    "a worker of another host whose lease is over, taken back": (
        Facts(W, Lease.OVER, Process.ELSEWHERE, Outcome.DONE),
        *(Found.NO_HANDLE, Liveness.DEAD, Disposition.STOPPED),
    ),
    "a worker of another host whose lease is over, not taken back": (
        Facts(W, Lease.OVER, Process.ELSEWHERE, Outcome.HELD),
        *(Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED),
    ),
    "a frozen worker whose lease is over": (
        Facts(W, Lease.OVER, Process.HERE, Outcome.DONE),
        *(None, Liveness.DEAD, Disposition.STOPPED),
    ),
    "a run of a killed worker": (
        Facts(R, Lease.OVER, Process.GONE, Outcome.DONE),
        *(Found.ABSENT, Liveness.DEAD, Disposition.REPAIRED),
    ),
    "a run without any worker": (
        Facts(R, Lease.MISSING, Process.UNNAMED, Outcome.DONE),
        *(Found.NO_HANDLE, Liveness.DEAD, Disposition.REPAIRED),
    ),
    "a run that a reaper took first": (
        Facts(R, Lease.OVER, Process.GONE, Outcome.OVERTAKEN),
        *(Found.ABSENT, Liveness.DEAD, Disposition.ALREADY_ABSENT),
    ),
    "a run that its owner is cancelling just now": (
        Facts(R, Lease.OVER, Process.ELSEWHERE, Outcome.HELD),
        *(Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED),
    ),
    "a child of a worker that works": (
        Facts(C, Lease.LIVE, Process.HERE, Outcome.NOT_TRIED),
        *(None, Liveness.ALIVE, Disposition.PRESERVED),
    ),
    "a child that outlived its worker": (
        Facts(C, Lease.OVER, Process.HERE, Outcome.DONE),
        *(None, Liveness.ALIVE, Disposition.STOPPED),
    ),
    "a child that ended as it was looked at": (
        Facts(C, Lease.OVER, Process.HERE, Outcome.OVERTAKEN),
        *(None, Liveness.DEAD, Disposition.ALREADY_ABSENT),
    ),
    "a child that is gone": (
        Facts(C, Lease.LIVE, Process.GONE, Outcome.DONE),
        *(Found.ABSENT, Liveness.DEAD, Disposition.ALREADY_ABSENT),
    ),
    "a child of another host": (
        Facts(C, Lease.LIVE, Process.ELSEWHERE, Outcome.NOT_TRIED),
        *(Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED),
    ),
    "a child that may not be looked at": (
        Facts(C, Lease.OVER, Process.UNREADABLE, Outcome.NOT_TRIED),
        *(Found.OTHER_ERROR, Liveness.ALIVE, Disposition.PRESERVED),
    ),
    "a child of which no PID was written down": (
        Facts(C, Lease.LIVE, Process.UNNAMED, Outcome.NOT_TRIED),
        *(Found.NO_HANDLE, Liveness.UNKNOWN, Disposition.PRESERVED),
    ),
    "a child that is not ours to end": (
        Facts(C, Lease.OVER, Process.HERE, Outcome.FAILED),
        *(None, Liveness.ALIVE, Disposition.PRESERVED),
    ),
    "a run that could not be put back": (
        Facts(R, Lease.OVER, Process.UNNAMED, Outcome.FAILED),
        *(Found.NO_HANDLE, Liveness.UNKNOWN, Disposition.PRESERVED),
    ),
}


class TestAVerdict:
    @pytest.mark.parametrize("case", CASES.values(), ids=CASES)
    def test_on(self, case: tuple[Facts, Found | None, Liveness, Disposition]) -> None:
        facts, *expected = case
        verdict = classify(facts)
        assert [verdict.found, verdict.liveness, verdict.disposition] == expected


HERE = socket.gethostname()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process of ours that goes on until it is told to end."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def name_of(pid: int) -> ProcessName:
    return ProcessName(HERE, pid, datetime.fromtimestamp(psutil.Process(pid).create_time(), UTC))


class TestALookAtAProcess:
    def test_finds_itself(self) -> None:
        assert look_for(ProcessName(HERE, os.getpid(), process_start()), HERE) is Process.HERE

    def test_finds_one_gone_once_it_has_ended_though_nobody_has_waited_for_it(
        self, child: subprocess.Popen[bytes]
    ) -> None:
        name = name_of(child.pid)
        assert look_for(name, HERE) is Process.HERE
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert look_for(name, HERE) is Process.GONE
        child.wait()
        assert look_for(name, HERE) is Process.GONE

    def test_takes_nobody_else_with_the_same_pid_for_it(
        self, child: subprocess.Popen[bytes]
    ) -> None:
        name = name_of(child.pid)
        assert name.started_at is not None
        earlier = replace(name, started_at=name.started_at - timedelta(minutes=1))
        assert look_for(earlier, HERE) is Process.GONE

    def test_knows_nothing_of_another_host_even_with_the_same_pid(self) -> None:
        name = ProcessName("elsewhere.test", os.getpid(), process_start())
        assert look_for(name, HERE) is Process.ELSEWHERE

    def test_knows_nothing_where_no_host_pid_or_start_was_written_down(self) -> None:
        assert look_for(ProcessName(None, None, None), HERE) is Process.UNNAMED
        assert look_for(ProcessName(HERE, None, None), HERE) is Process.UNNAMED
        assert look_for(ProcessName(HERE, os.getpid(), None), HERE) is Process.UNNAMED

    def test_finds_one_that_it_may_not_look_at_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(pid: int) -> psutil.Process:
            raise psutil.AccessDenied(pid)

        monkeypatch.setattr(psutil, "Process", refuse)
        assert look_for(ProcessName(HERE, 1, None), HERE) is Process.UNREADABLE


def finding(facts: Facts, error: str | None = None, pid_present: bool = True) -> Finding:
    return Finding(facts.kind, uuid4(), pid_present, classify(facts), error)


KILLED = Facts(W, Lease.LIVE, Process.GONE, Outcome.NOT_TRIED)
LOCKED = Facts(R, Lease.OVER, Process.ELSEWHERE, Outcome.HELD)
WORKING = Facts(W, Lease.LIVE, Process.ELSEWHERE, Outcome.NOT_TRIED)
FAILED = Facts(R, Lease.OVER, Process.GONE, Outcome.FAILED)
REPAIRED = Facts(R, Lease.OVER, Process.GONE, Outcome.DONE)


class TestWhatGoesIntoTheLog:
    def test_is_one_warning_with_counts_for_all_that_stays(self) -> None:
        found = (finding(KILLED), finding(LOCKED), finding(LOCKED), finding(WORKING))
        with capture_logs() as lines:
            log_summary(Summary(found, dry_run=False))
        (line,) = lines
        assert line["log_level"] == "warning"
        assert line["preserved"] == [
            {
                "disposition": "preserved",
                "liveness": "dead",
                "error_class": "absent",
                "pid_present": True,
                "count": 1,
            },
            {
                "disposition": "preserved",
                "liveness": "remote",
                "error_class": "no handle",
                "pid_present": True,
                "count": 2,
            },
        ]

    def test_is_nothing_where_all_is_in_order(self) -> None:
        with capture_logs() as lines:
            log_summary(Summary((finding(WORKING),), dry_run=False))
            log_summary(Summary((), dry_run=False))
        assert lines == []

    def test_is_one_warning_for_each_failure_with_its_class_only(self) -> None:
        failures = (finding(FAILED, "RaiseError"), finding(FAILED, "ValueError"))
        with capture_logs() as lines:
            log_summary(Summary(failures, dry_run=False))
        assert [(line["log_level"], line["kind"], line["error"]) for line in lines] == [
            ("warning", "run", "RaiseError"),
            ("warning", "run", "ValueError"),
        ]
        assert {line["id"] for line in lines} == {str(each.id) for each in failures}

    def test_tells_what_was_changed(self) -> None:
        with capture_logs() as lines:
            log_summary(Summary((finding(REPAIRED),), dry_run=False))
        (line,) = lines
        assert (line["log_level"], line["runs_repaired"], line["workers_stopped"]) == ("info", 1, 0)
