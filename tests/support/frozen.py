"""A worker that does nothing for a while: what it would do next can be looked at in peace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from urllib.parse import urlsplit

import psutil


@contextmanager
def frozen_workers(url: str) -> Iterator[None]:
    """Hold the workers of the development service at this address, which this process started."""
    workers = _workers_at(str(urlsplit(url).port))
    assert workers, f"no worker of {url} is running"
    for worker in workers:
        worker.suspend()
    try:
        yield
    finally:
        for worker in workers:
            worker.resume()


def _workers_at(port: str) -> list[psutil.Process]:
    return [
        child
        for process in psutil.Process().children(recursive=True)
        if _follows(_line(process), "--port", port) and "dev" in _line(process)
        for child in process.children(recursive=True)
        if _follows(_line(child), "app.cli", "worker")
    ]


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def _follows(line: list[str], first: str, second: str) -> bool:
    return (first, second) in pairwise(line)
