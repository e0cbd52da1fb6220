"""``stoa dev`` from its first check to its last process."""

from __future__ import annotations

import asyncio
from pathlib import Path

from app.dev.errors import DevelopmentError
from app.dev.ports import free_port, is_free
from app.dev.supervisor.development import Development
from app.dev.supervisor.folder import open_folder
from app.dev.supervisor.interrupts import Interrupts
from app.dev.supervisor.ollama import LOCAL_MODEL, has_model, ollama_answers
from app.dev.supervisor.plans import Addresses
from app.settings import load_settings

_PORT_SECONDS = 2.0
_POLL_SECONDS = 0.05


async def run_development(*, port: int, data: Path, reset: bool) -> int:
    """Run everything until a signal ends it, and return the exit status.

    Raises:
        DevelopmentError: something is in the way; the message says what to do.
        SettingsError: a setting is wrong.
    """
    settings = load_settings()
    with open_folder(data) as folder:
        await _require_port(port)
        if reset:
            folder.reset()
        model = None
        if not settings.pool:  # those of a `stoa.toml` are set on purpose
            model = await _choose_model(str(settings.ollama_url), settings.model, folder.path)
        development = Development(Addresses(port, free_port(), model), folder)
        await _run(development)
    return 0


async def _run(development: Development) -> None:
    running = asyncio.create_task(development.run())
    with Interrupts(running.cancel, development.hurry) as interrupts:
        try:
            await running
        except asyncio.CancelledError:
            if not interrupts.happened:
                raise
            print("\nStopping. Once more to hurry.", flush=True)  # noqa: T201
        finally:
            await development.stop()


async def _require_port(port: int) -> None:
    """Wait a moment: the processes of a start that was killed may still be on their way out."""
    deadline = asyncio.get_running_loop().time() + _PORT_SECONDS
    while not is_free(port):
        if asyncio.get_running_loop().time() > deadline:
            other = port + 1 if port < 65535 else port - 1  # noqa: PLR2004
            raise DevelopmentError(
                f"Port {port} is taken. Stop what uses it, or choose another one:"
                f' `make run ARGS="--port {other}"`, or `stoa dev --port {other}`.'
            )
        await asyncio.sleep(_POLL_SECONDS)


async def _choose_model(url: str, model: str, data: Path) -> int | None:
    """Return the port for the small local model, or ``None`` where an Ollama answers."""
    if not await ollama_answers(url):
        fetched = any((data / "model").glob("*.gguf"))
        print(  # noqa: T201
            f"No Ollama answers at {url} (STOA_OLLAMA_URL): using the small local model"
            f" {LOCAL_MODEL}, which answers simple questions."
            + ("" if fetched else " It is fetched now (93 MB)."),
            flush=True,
        )
        return free_port()
    print(f"Using the Ollama at {url} with the model {model} (STOA_MODEL).", flush=True)  # noqa: T201
    if not await has_model(url, model):
        print(f"It does not have that model yet: `ollama pull {model}`.", flush=True)  # noqa: T201
    return None
