"""The embedded server: start, address, stop."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

from app.dev.child import RunAs, end, start_guarded
from app.dev.errors import DevelopmentError
from app.dev.ports import free_port
from app.dev.postgres.cluster import (
    DATABASE,
    RESET,
    check_cluster,
    explain,
    make_cluster,
    wait_until_ready,
)
from app.dev.postgres.credentials import Credentials, Role
from app.dev.postgres.installation import program
from app.dev.postgres.orphan import children_ended, clear_orphan
from app.dev.postgres.system_user import server_user

_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    # One way in. A socket's path may be too long for where the checkout lies.
    "unix_socket_directories": "",
    "password_encryption": "scram-sha-256",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "max_wal_size": "1GB",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "io_method": "sync",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # What a person wrote stands in statements and in the details of errors.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
}
_TEMPORARY = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
_ATTEMPTS = 5
_CHILDREN_LEFT = "pre-existing shared memory block"
_LOG_BYTES = 10_000_000
_START_SECONDS = 60
_STOPPING = ((signal.SIGINT, 15.0), (signal.SIGQUIT, 5.0))
_HURRYING = ((signal.SIGQUIT, 5.0),)


class EmbeddedPostgres:
    """A PostgreSQL that runs as a child of this process and ends with it, however that ends.

    ``folder`` holds the cluster (``postgres/``), its passwords and its log. With
    ``temporary`` a crash of the machine may lose data, and everything is faster.
    """

    def __init__(self, folder: Path, *, temporary: bool = False) -> None:
        self._folder = folder.resolve()
        self._data = self._folder / "postgres"
        self._log = self._folder / "postgres.log"
        self._temporary = temporary
        self._credentials: Credentials | None = None
        self._process: asyncio.subprocess.Process | None = None

    @property
    def log(self) -> Path:
        """The server's log file."""
        return self._log

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._running().pid

    async def prepare(self) -> None:
        """Make sure there is a cluster and a port, so that :meth:`dsn` can be asked.

        Raises:
            DevelopmentError: the folder cannot be used; the message says what to do.
        """
        path = self._folder / "credentials.json"
        credentials = Credentials.load(path)
        run_as = self._run_as()
        exists = check_cluster(self._data)
        if exists and credentials is None:
            raise DevelopmentError(
                f"{path} is gone, and with it the passwords of the data beside it."
                " `make run ARGS=--reset` (`stoa dev --reset`) starts afresh and deletes that data."
            )
        if exists:
            await clear_orphan(self._data)
        credentials = credentials or Credentials.random()
        self._credentials = credentials.at_port(free_port(credentials.port))
        if self._credentials != Credentials.load(path):
            self._credentials.save(path)
        if not exists:
            await make_cluster(self._data, credentials.owner, run_as, durable=not self._temporary)

    async def start(self) -> None:
        """Start the server and wait until it takes connections.

        Raises:
            DevelopmentError: it does not start; the message says what to do.
        """
        if self._credentials is None:
            await self.prepare()
        if self._log.exists() and self._log.stat().st_size > _LOG_BYTES:
            self._log.unlink()
        for _ in range(_ATTEMPTS):
            if await self._start_once():
                return
        raise DevelopmentError(f"PostgreSQL does not start. Its log: {self._log}")

    def dsn(self, role: Role = "owner", database: str = DATABASE) -> str:
        """Return the address of a database for one role; the owner's is the superuser's."""
        if self._credentials is None:
            raise RuntimeError("prepare() or start() comes first")
        return self._credentials.dsn(role, database)

    async def wait(self) -> int:
        """Wait until the server has ended, and return its status."""
        return await self._running().wait()

    async def stop(self, *, hurry: bool = False) -> None:
        """End the server: connections are cut, data is written. Harmless if it does not run."""
        if self._process is not None:
            await end(self._process, _HURRYING if hurry else _STOPPING)
            self._process = None

    def hurry(self) -> None:
        """Make the server end without tidying up; the next start replays its log."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGQUIT)

    def _running(self) -> asyncio.subprocess.Process:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process

    def _run_as(self) -> RunAs | None:
        return server_user(self._data, program("postgres"))

    async def _start_once(self) -> bool:
        """Start; ``False`` means that it may start now.

        Somebody took the port, and there is another one; or processes of a server that was killed
        had not ended yet.
        """
        start_of_log = self._log.stat().st_size if self._log.exists() else 0
        self._process = await self._spawn()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await wait_until_ready(self._data, self._process, self._process.pid)
        except TimeoutError:
            await end(self._process, _HURRYING)
        except asyncio.CancelledError:
            await self.stop(hurry=True)
            raise
        if self._process.returncode is None:
            return True
        self._process = None
        with self._log.open("rb") as log:
            log.seek(start_of_log)
            output = log.read().decode(errors="replace")
        if "could not bind" in output and self._credentials is not None:
            self._credentials = self._credentials.at_port(free_port())
            self._credentials.save(self._folder / "credentials.json")
            return False
        if _CHILDREN_LEFT in output and await children_ended(self._data):
            return False
        unusable = f"the data in {self._data} cannot be used. If it is beyond repair, {RESET}"
        raise DevelopmentError(f"{explain(output, unusable)}\nThe whole log: {self._log}")

    async def _spawn(self) -> asyncio.subprocess.Process:
        assert self._credentials is not None  # noqa: S101 - start() has seen to it
        settings = _SETTINGS | (_TEMPORARY if self._temporary else {})
        command = [str(program("postgres")), "-D", str(self._data)]
        command += ["-p", str(self._credentials.port)]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as log:
            return await start_guarded(
                command,
                on_death=signal.SIGQUIT,
                run_as=self._run_as(),
                env={"PATH": os.defpath, "TZ": "UTC", "LC_ALL": "C"},
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
