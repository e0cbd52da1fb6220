"""Model servers by their addresses, without what a person would log in with."""

from __future__ import annotations

from urllib.parse import urlsplit


def without_credentials(url: str) -> str:
    """An address without a user name and a password in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
