"""The plain HTTP connection to a model server."""

from __future__ import annotations

import ssl
from functools import lru_cache

import httpx


def build_transport(url: str) -> httpx.AsyncHTTPTransport:
    """Return a connection pool without proxies, environment or a bound of its own.

    A TLS context costs 20 ms and more, so there is one, and only where the URL asks for TLS.
    """
    secure = httpx.URL(url).scheme == "https"
    return httpx.AsyncHTTPTransport(
        verify=tls() if secure else False,
        trust_env=False,
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=32),
    )


@lru_cache(maxsize=1)
def tls() -> ssl.SSLContext:
    """The authorities that this machine trusts."""
    return ssl.create_default_context()
