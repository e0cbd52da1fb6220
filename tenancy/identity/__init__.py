"""Who is asking: a gateway's signed assertion, verified, and the user it stands for."""

from __future__ import annotations

from tenancy.identity.fetch import HttpJwksFetcher, JwksFetcher, JwksFetchFailed
from tenancy.identity.settings import JwtIdentitySettings
from tenancy.identity.verifier import IdentityVerifier

__all__ = [
    "HttpJwksFetcher",
    "IdentityVerifier",
    "JwksFetchFailed",
    "JwksFetcher",
    "JwtIdentitySettings",
]
