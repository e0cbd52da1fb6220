"""The gateway's own routes, under the names oauth2-proxy gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from app.dev.gateway.fields import UnusableForm, read_fields
from app.dev.gateway.language import preferred_language
from app.dev.gateway.loopback import is_same_origin
from app.dev.gateway.page import sign_in_page
from app.dev.gateway.person import Person, UnusableName, read_name
from app.dev.gateway.problems import problem
from app.dev.gateway.redirects import SIGN_IN_PATH, local_address
from app.dev.gateway.settings import JWKS_PATH
from app.dev.gateway.signer import PassKind, Signer

if TYPE_CHECKING:
    from starlette.requests import Request

    from app.dev.gateway.passes import Passes
    from app.dev.gateway.upstream import Upstream

_NO_STORE = {"Cache-Control": "no-store"}


class SignIn:
    """Signs people and programs in and out."""

    def __init__(self, passes: Passes, signer: Signer, upstream: Upstream) -> None:
        self._passes = passes
        self._signer = signer
        self._upstream = upstream

    def routes(self) -> list[Route]:
        """Return the routes that are not forwarded."""
        return [
            Route(SIGN_IN_PATH, self._show, methods=["GET"]),
            Route("/oauth2/sign_in", self._show, methods=["GET"]),
            Route("/oauth2/sign_in", self._sign_in, methods=["POST"]),
            Route("/oauth2/sign_out", self._sign_out, methods=["GET", "POST"]),
            Route("/oauth2/token", self._token, methods=["POST"]),
            Route(JWKS_PATH, self._jwks, methods=["GET"]),
        ]

    async def _show(self, request: Request) -> Response:
        language = preferred_language(request.headers.get("accept-language", ""))
        return sign_in_page(language, back_to=local_address(request.query_params.get("rd")))

    async def _sign_in(self, request: Request) -> Response:
        if not is_same_origin(request):
            return _cross_site()
        try:
            fields = await read_fields(request)
        except UnusableForm:
            return _unusable_form()
        rd = fields.get("rd")
        back_to = local_address(rd if isinstance(rd, str) else None)
        try:
            person = _person(fields)
        except UnusableName:
            language = preferred_language(request.headers.get("accept-language", ""))
            return sign_in_page(language, back_to=back_to, refused=True)
        response = RedirectResponse(back_to, 303, headers=_NO_STORE)
        self._passes.remember(response, person)
        return response

    async def _sign_out(self, _request: Request) -> Response:
        response = RedirectResponse(SIGN_IN_PATH, 303, headers=_NO_STORE)
        self._passes.forget(response)
        return response

    async def _token(self, request: Request) -> Response:
        if not is_same_origin(request):
            return _cross_site()
        try:
            person = _person(await read_fields(request))
        except UnusableForm:
            return _unusable_form()
        except UnusableName:
            return problem(422, "invalid_name", "Give a name of 1 to 64 characters.")
        grant = {
            "access_token": self._passes.token(person),
            "token_type": "Bearer",
            "expires_in": PassKind.TOKEN.seconds,
        }
        return JSONResponse(grant, headers=_NO_STORE)

    async def _jwks(self, _request: Request) -> Response:
        """All keys of this address: the gateway's own, and those of the service behind it."""
        keys = [*self._signer.jwks["keys"], *await self._upstream.keys(JWKS_PATH)]
        return JSONResponse({"keys": keys}, headers={"Cache-Control": "max-age=60"})


def _person(fields: dict[str, object]) -> Person:
    operator = fields.get("operator") in (True, "1", "on", "true")
    return Person(read_name(fields.get("name")), operator=operator)


def _cross_site() -> Response:
    return problem(403, "cross_site_request", "Sign in from the gateway's own page.")


def _unusable_form() -> Response:
    return problem(400, "malformed_request", "The request is neither a form nor a JSON object.")
