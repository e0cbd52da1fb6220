"""A small sign-in gateway for one machine: a real reverse proxy that signs real assertions.

It lets anybody in under any name, so it listens on loopback only. What it forwards is exactly
what a production gateway forwards, so the service behind it takes its production code path.
"""

from __future__ import annotations

from app.dev.gateway.server import serve_gateway
from app.dev.gateway.settings import GatewaySettings

__all__ = ["GatewaySettings", "serve_gateway"]
