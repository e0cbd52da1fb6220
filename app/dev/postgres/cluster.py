"""A data folder of the server: made whole or not at all, and recognised before it is used."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path

from app.dev.child import RunAs, start_guarded
from app.dev.errors import DevelopmentError
from app.dev.postgres.credentials import LOGIN
from app.dev.postgres.installation import MAJOR_VERSION, program

DATABASE = "stoa"
# Of postmaster.pid: the eighth.
_STATUS_LINE = 7
RESET = "`make run ARGS=--reset` (`stoa dev --reset`) starts afresh and deletes the data here."


def check_cluster(data: Path) -> bool:
    """Say whether there is a cluster that this server can run.

    Raises:
        DevelopmentError: there is something else; the message says what to do.
    """
    if not data.exists():
        return False
    try:
        version = (data / "PG_VERSION").read_text(encoding="ascii").strip()
        owner = data.stat().st_uid
    except PermissionError as error:
        raise DevelopmentError(
            f"{data} belongs to another user. Start as that user,"
            " or choose another folder with --data."
        ) from error
    except (OSError, ValueError) as error:
        raise DevelopmentError(f"{data} is not a PostgreSQL data folder. {RESET}") from error
    if version != MAJOR_VERSION:
        raise DevelopmentError(
            f"{data} was made by PostgreSQL {version or 'of an unknown version'};"
            f" this is PostgreSQL {MAJOR_VERSION}. To keep the data, dump it with its own version."
            f" {RESET}"
        )
    if os.geteuid() not in {0, owner}:
        raise DevelopmentError(
            f"{data} belongs to another user. Start as that user,"
            " or choose another folder with --data."
        )
    return True


async def make_cluster(data: Path, password: str, run_as: RunAs | None, *, durable: bool) -> None:
    """Make a cluster with one superuser and one empty database.

    It grows beside its place and moves there when it is whole, so that a start that was killed
    half-way leaves nothing that looks like data.
    """
    growing = data.with_name(f"{data.name}.new")
    shutil.rmtree(growing, ignore_errors=True)
    growing.mkdir(mode=0o700)
    if run_as is not None:
        os.chown(growing, run_as.uid, run_as.gid)
    await _initdb(growing, password, run_as, durable=durable)
    # Without a running server: no connection, no driver, nobody else there yet.
    await _run(
        [str(program("postgres")), "--single", "-D", str(growing), "postgres"],
        run_as,
        script=f'CREATE DATABASE "{DATABASE}"\n',
    )
    growing.rename(data)


async def _initdb(growing: Path, password: str, run_as: RunAs | None, *, durable: bool) -> None:
    with tempfile.NamedTemporaryFile("w", dir=growing.parent, prefix=".initdb-") as file:
        file.write(password)
        file.flush()
        if run_as is not None:
            os.chown(file.name, run_as.uid, run_as.gid)
        command = [str(program("initdb")), "-D", str(growing), "-U", LOGIN["owner"]]
        command += ["--auth=scram-sha-256", f"--pwfile={file.name}", "--encoding=UTF8"]
        # The same order of texts on every machine, whatever locales it has.
        command += ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        await _run(command if durable else [*command, "--no-sync"], run_as)


async def _run(command: list[str], run_as: RunAs | None, script: str = "") -> None:
    process = await start_guarded(command, run_as=run_as, env={"PATH": os.defpath, "TZ": "UTC"})
    output, _ = await process.communicate(script.encode())
    if process.returncode != 0:
        raise DevelopmentError(explain(output.decode(errors="replace"), "it could not be set up."))


def explain(output: str, fallback: str) -> str:
    """Turn what a PostgreSQL program printed into what a person should do."""
    if "No space left on device" in output:
        return "PostgreSQL: the disk is full. Make room and start again."
    if "Permission denied" in output:
        return f"PostgreSQL may not use its data folder. Check who owns it.\n{_worst(output)}"
    if "could not create shared memory segment" in output:
        return f"PostgreSQL: the system gives no shared memory.\n{_worst(output)}"
    return f"PostgreSQL: {fallback}\n{_worst(output)}"


def _worst(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    grave = [line for line in lines if any(word in line for word in ("FATAL", "PANIC", "error:"))]
    return "\n".join((grave or lines)[-3:])


async def wait_until_ready(data: Path, process: asyncio.subprocess.Process, pid: int) -> None:
    """Wait until the server has written that it takes connections, or is gone."""
    # As pg_ctl does: the file is the only sign that needs no connection.
    while process.returncode is None and not _says_ready(data, pid):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


def _says_ready(data: Path, pid: int) -> bool:
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return lines[:1] == [str(pid)] and [line.strip() for line in lines[_STATUS_LINE:]] == ["ready"]
