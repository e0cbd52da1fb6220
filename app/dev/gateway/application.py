"""Put the gateway together."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.routing import Router

from app.dev.gateway.keys import load_or_create_key
from app.dev.gateway.loopback import LoopbackNames
from app.dev.gateway.passes import Passes
from app.dev.gateway.proxy import Proxy
from app.dev.gateway.signer import Signer
from app.dev.gateway.signin import SignIn
from app.dev.gateway.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp

    from app.dev.gateway.settings import GatewaySettings


def create_gateway(settings: GatewaySettings) -> ASGIApp:
    """Return the gateway as an ASGI application.

    Raises:
        DevelopmentError: its key file cannot be used.
    """
    key = load_or_create_key(settings.key_file)
    signer = Signer(key, issuer=settings.issuer_name, audience=settings.audience)
    passes = Passes(signer, settings.port)
    upstream = Upstream(settings.upstream)

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await upstream.aclose()

    router = Router(
        routes=SignIn(passes, signer, upstream).routes(),
        default=Proxy(passes, signer, upstream, settings.header),
        redirect_slashes=False,
        lifespan=lifespan,
    )
    return LoopbackNames(router)
