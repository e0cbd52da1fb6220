"""Processes that do nothing for a while: what they would do next can be looked at in peace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psutil


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Hold these processes, which the test has started."""
    processes = [psutil.Process(pid) for pid in pids]
    assert processes, "there is nothing to hold"
    for process in processes:
        process.suspend()
    try:
        yield
    finally:
        for process in processes:
            process.resume()
