"""The plain HTTP connection to a model server."""

from __future__ import annotations

import ssl
from functools import lru_cache

import httpx

WRITE_SECONDS = 30.0


def build_transport(url: str) -> httpx.AsyncHTTPTransport:
    """Return a connection pool without proxies, environment or a bound of its own.

    A TLS context costs 20 ms and more, so there is one, and only where the URL asks for TLS.
    """
    secure = httpx.URL(url).scheme == "https"
    return httpx.AsyncHTTPTransport(
        verify=_tls() if secure else False,
        trust_env=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
    )


def build_timeout(connect_seconds: float) -> httpx.Timeout:
    """Return HTTP time-outs without one for reading: only the reader knows what it waits for."""
    return httpx.Timeout(connect=connect_seconds, read=None, write=WRITE_SECONDS, pool=None)


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
