"""Processes of tool servers that outlived their worker: ended with proof, left alone without."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from app.tools.stdio.records import FOLDER, ChildRecords, left_children
from tenancy.reconcile.facts import Disposition, Found, Kind, Liveness
from tenancy.reconcile.passing import reconcile
from tenancy.reconcile.summary import Summary, log_summary
from tests.support.tenancy import TestDatabase

PATIENCE = 30.0

WORKER = """
import subprocess, sys
from pathlib import Path
from app.tools.stdio.records import ChildRecords

child = subprocess.Popen(
    [sys.executable, "-c", sys.argv[2]],
    stdout=subprocess.PIPE, text=True, start_new_session=True,
)
helper = child.stdout.readline().strip()
ChildRecords(Path(sys.argv[1])).begun(child.pid)
print(child.pid, helper, flush=True)
input()
"""
CHILD = """
import subprocess, sys, time
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(helper.pid, flush=True)
time.sleep(600)
"""
"""Starts a helper, as browsers and shells do."""


@dataclass
class Started:
    """A worker with a child, and a helper of that one's."""

    worker: subprocess.Popen[str]
    child: psutil.Process
    helper: psutil.Process


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Started]:
    """Processes of their own, that no kernel and no warden ends with their worker."""
    worker = subprocess.Popen(
        [sys.executable, "-c", WORKER, str(tmp_path), CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    child, helper = (psutil.Process(int(pid)) for pid in worker.stdout.readline().split())
    try:
        yield Started(worker, child, helper)
    finally:
        worker.kill()
        worker.communicate()
        for process in (child, helper):
            if process.is_running():
                process.kill()


async def one_pass(database: TestDatabase, folder: Path, *, dry_run: bool = False) -> Summary:
    return await reconcile(
        database.settings("dispatch"), children=left_children(folder), dry_run=dry_run
    )


def verdicts(summary: Summary) -> list[tuple[Found | None, Liveness, Disposition]]:
    return [
        (each.verdict.found, each.verdict.liveness, each.verdict.disposition)
        for each in summary.findings
        if each.kind is Kind.CHILD
    ]


def written(folder: Path) -> list[Path]:
    return list((folder / FOLDER).iterdir())


def rewrite(folder: Path, **fields: object) -> None:
    (path,) = written(folder)
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


IN_ORDER = (None, Liveness.ALIVE, Disposition.PRESERVED)
STOPPED = (None, Liveness.ALIVE, Disposition.STOPPED)
GONE = (Found.ABSENT, Liveness.DEAD, Disposition.ALREADY_ABSENT)


class TestAChildOfAWorkerThatLives:
    @pytest.mark.parametrize("frozen", [False, True], ids=["and works", "and stands still"])
    async def test_is_left_alone_and_nobody_need_be_told(
        self, database: TestDatabase, tmp_path: Path, started: Started, frozen: bool
    ) -> None:
        if frozen:
            started.worker.send_signal(signal.SIGSTOP)
        summary = await one_pass(database, tmp_path)
        assert verdicts(summary) == [IN_ORDER]
        with capture_logs() as lines:
            log_summary(summary)
        assert lines == []
        assert started.child.is_running()

    async def test_is_forgotten_once_it_is_gone_itself(
        self, database: TestDatabase, tmp_path: Path, started: Started
    ) -> None:
        started.child.kill()
        assert verdicts(await one_pass(database, tmp_path)) == [GONE]
        assert written(tmp_path) == []


class TestAChildThatOutlivedItsWorker:
    @pytest.mark.parametrize("frozen", [False, True], ids=["and works", "and stands still"])
    async def test_is_ended_with_all_that_it_started_and_a_second_pass_changes_nothing(
        self, database: TestDatabase, tmp_path: Path, started: Started, frozen: bool
    ) -> None:
        if frozen:
            started.child.suspend()
        started.worker.kill()
        started.worker.wait()
        dry = await one_pass(database, tmp_path, dry_run=True)
        assert (verdicts(dry), dry.changed) == ([STOPPED], True)
        assert started.child.is_running()
        assert len(written(tmp_path)) == 1

        assert verdicts(await one_pass(database, tmp_path)) == [STOPPED]
        gone, left = psutil.wait_procs([started.child, started.helper], PATIENCE)
        assert (len(gone), left) == (2, [])
        again = await one_pass(database, tmp_path)
        assert (verdicts(again), again.changed) == ([], False)

    async def test_is_left_alone_where_its_pid_is_somebody_elses(
        self, database: TestDatabase, tmp_path: Path, started: Started
    ) -> None:
        started.worker.kill()
        started.worker.wait()
        (path,) = written(tmp_path)
        earlier = {**json.loads(path.read_text())["child"], "started_at": "2020-01-01T00:00:00Z"}
        rewrite(tmp_path, child=earlier)
        assert verdicts(await one_pass(database, tmp_path)) == [GONE]
        assert started.child.is_running()


class TestAChildOfWhichNothingIsKnown:
    async def test_is_left_alone_on_another_host_and_counted_in_one_warning(
        self, database: TestDatabase, tmp_path: Path, started: Started
    ) -> None:
        started.worker.kill()
        started.worker.wait()
        rewrite(tmp_path, host="elsewhere.test")
        (tmp_path / FOLDER / "11111111-1111-1111-1111-111111111111.json").write_text("{")
        summary = await one_pass(database, tmp_path)
        assert sorted(verdicts(summary), key=str) == sorted(
            [
                (Found.NO_HANDLE, Liveness.REMOTE, Disposition.PRESERVED),
                (Found.NO_HANDLE, Liveness.UNKNOWN, Disposition.PRESERVED),
            ],
            key=str,
        )
        assert started.child.is_running()
        assert len(written(tmp_path)) == 2
        with capture_logs() as lines:
            log_summary(summary)
        (line,) = lines
        about = {"disposition": "preserved", "error_class": "no handle", "count": 1}
        assert line["preserved"] == [
            {**about, "liveness": "remote", "pid_present": True},
            {**about, "liveness": "unknown", "pid_present": False},
        ]
        assert socket.gethostname() not in str(line)

    async def test_nothing_is_said_where_no_child_was_ever_started(
        self, database: TestDatabase, tmp_path: Path
    ) -> None:
        assert verdicts(await one_pass(database, tmp_path)) == []


class TestTheRecord:
    def test_is_there_as_long_as_the_child_and_says_nothing_else(
        self, tmp_path: Path, started: Started
    ) -> None:
        (path,) = written(tmp_path)
        assert set(json.loads(path.read_text())) == {"host", "child", "owner"}
        records = ChildRecords(tmp_path)
        records.begun(started.child.pid)
        assert len(written(tmp_path)) == 2
        records.over(started.child.pid)
        assert written(tmp_path) == [path]
        assert path.parent.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("put", ["deep", "link", "pipe", "another user's"])
    def test_names_no_process_where_somebody_else_has_put_it_there(
        self, tmp_path: Path, put: str
    ) -> None:
        ChildRecords(tmp_path).begun(os.getpid())
        (path,) = written(tmp_path)
        if put == "another user's":
            if os.geteuid() != 0:
                pytest.skip("only root may give a file away")
            os.chown(path, 65534, 65534)
        else:
            elsewhere = path.rename(tmp_path / "elsewhere")
            match put:
                case "deep":
                    path.write_text("[" * 4000)
                case "link":
                    path.symlink_to(elsewhere)
                case _:
                    os.mkfifo(path)
        (found,) = left_children(tmp_path)
        assert (found.process.pid, found.owner.pid) == (None, None)
