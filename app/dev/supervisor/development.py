"""A whole development service: what is started when, and ended in which order."""

from __future__ import annotations

import asyncio
import time

from app.dev.errors import DevelopmentError
from app.dev.postgres import EmbeddedPostgres
from app.dev.supervisor.database import Database
from app.dev.supervisor.folder import DataFolder
from app.dev.supervisor.health import answers
from app.dev.supervisor.keys import SIGNING_KEYS, VAULT_KEYS, ensure_keys
from app.dev.supervisor.plans import Addresses, plans
from app.dev.supervisor.program import Program
from app.dev.supervisor.service import Service


class Development:
    """Everything ``stoa dev`` runs. Use :meth:`run` once, and :meth:`stop` whatever happened."""

    def __init__(self, addresses: Addresses, folder: DataFolder) -> None:
        self._addresses = addresses
        self._folder = folder
        self._postgres = EmbeddedPostgres(folder.path)
        self._database = Database(self._postgres)
        self._programs: dict[str, Program] = {}
        self._hurried = False

    async def run(self) -> None:
        """Start everything, say so, and keep it running until cancelled.

        Raises:
            DevelopmentError: something does not start, or cannot be kept running.
        """
        begin = time.monotonic()
        try:
            await self._start()
            print(  # noqa: T201
                f"\nStoa is ready: {self._addresses.public}"
                f"  (in {time.monotonic() - begin:.1f} s)\n"
                f"Data stays in {self._folder.path}. Ctrl-C ends everything.\n",
                flush=True,
            )
            async with asyncio.TaskGroup() as group:
                for service in self._services():
                    group.create_task(service.watch())
        except* DevelopmentError as errors:
            raise _first(errors) from None

    async def stop(self) -> None:
        """End everything: what runs use after them, the database last."""
        model = self._programs.pop("model", None)
        await asyncio.gather(*(program.stop() for program in self._programs.values()))
        if model is not None:
            await model.stop()
        if self._hurried:
            self._database.hurry()
        await self._database.stop()

    def hurry(self) -> None:
        """Make a stop that is under way an immediate one; runs are given back all the same."""
        self._hurried = True
        for program in self._programs.values():
            program.hurry()

    def _services(self) -> list[Service]:
        lasting = [program for name, program in self._programs.items() if name != "migrate"]
        return [self._database, *lasting]

    async def _start(self) -> None:
        """Start all processes at once; each gets its turn when what it needs is there."""
        for kind in (VAULT_KEYS, SIGNING_KEYS):
            ensure_keys(self._folder.path, kind)
        await self._postgres.prepare()
        chosen = plans(self._addresses, self._folder.path, self._postgres)
        self._programs = {name: Program(plan) for name, plan in chosen.items()}
        for program in self._programs.values():
            await program.spawn()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._start_service())
            for name in ("gateway", "model"):
                if name in self._programs:
                    group.create_task(self._programs[name].ready())
        if not await answers(self._addresses.through):
            raise DevelopmentError(f"{self._addresses.through} does not answer.")

    async def _start_service(self) -> None:
        await self._postgres.start()
        migrate, web, worker = (self._programs[name] for name in ("migrate", "web", "worker"))
        migrate.let_go()
        await migrate.finished()
        web.let_go()
        worker.let_go()
        async with asyncio.TaskGroup() as group:
            group.create_task(web.ready())
            group.create_task(worker.ready())


def _first(errors: BaseExceptionGroup[DevelopmentError]) -> DevelopmentError:
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
