"""The browser comes back: who is let in by it, and who is not."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import asyncpg
import httpx
import pytest

from app.connections.oauth.authorizations import Answer, Finished
from app.connections.oauth.errors import (
    AuthorizationDenied,
    AuthorizationFailed,
    AuthorizationNotFound,
    AuthorizationOutdated,
    AuthorizationServerUnavailable,
    OAuthIssuerMismatch,
)
from tenancy.principal import Principal
from tests.integration.connections.oauth.stage import Stage, parameters


def failed(finished: Finished) -> type[object]:
    """As what an authorization ended."""
    return type(finished.failure)


class TestConsented:
    async def test_the_service_may_act_for_the_person(self, stage: Stage, alice: Principal) -> None:
        finished = await stage.authorize(alice)
        assert finished == Finished("protected")
        ((owner, tokens),) = stage.kept
        assert owner is alice
        async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            accept = {"Accept": "application/json, text/event-stream"}
            answer = await http.post(
                stage.protected.url, json=ping, headers={**tokens.headers(), **accept}
            )
        assert answer.status_code == 200

    async def test_the_code_is_redeemed_by_its_proof_and_for_this_server(
        self, stage: Stage, alice: Principal
    ) -> None:
        await stage.authorize(alice)
        (asked,) = stage.authorization.records.asked
        assert asked["grant_type"] == "authorization_code"
        assert asked["resource"] == stage.protected.url
        assert asked["redirect_uri"] == stage.CALLBACK
        assert 43 <= len(asked["code_verifier"]) <= 128
        assert "client_secret" not in asked

    @pytest.mark.parametrize(("told", "kept"), [(60, 60.0), (None, None)])
    async def test_how_long_a_token_lives_is_as_the_server_says(
        self, stage: Stage, alice: Principal, told: int | None, kept: float | None
    ) -> None:
        stage.authorization.behaviour.expires_in = told
        assert (await stage.tokens(alice)).expires_in == kept

    async def test_a_secret_goes_into_the_body_where_it_has_to(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.authorization.behaviour.metadata = {
            "token_endpoint_auth_methods_supported": ["client_secret_post"]
        }
        (client,) = stage.authorization.records.clients.values()
        client.auth_method = "client_secret_post"
        assert (await stage.authorize(alice)).failure is None


class TestWhoComesBack:
    async def test_somebody_else_with_the_state_finds_nothing_and_changes_nothing(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        answer = await stage.consent(await stage.begin(alice))
        with pytest.raises(AuthorizationNotFound):
            await stage.authorizations.finish(bob, answer)
        assert not stage.kept
        assert not stage.authorization.records.asked
        # Alice's is as it was.
        assert (await stage.authorizations.finish(alice, answer)).failure is None
        assert stage.kept[0][0] is alice

    async def test_nobody_is_led_into_somebody_elses_account(
        self, stage: Stage, alice: Principal, bob: Principal
    ) -> None:
        """Bob's own code, brought by Alice's browser to her own state."""
        own = await stage.consent(await stage.begin(alice))
        foreign = await stage.consent(await stage.begin(bob))
        finished = await stage.authorizations.finish(alice, replace(own, code=foreign.code))
        # His code was given for his proof, which hers is not.
        assert failed(finished) is AuthorizationFailed
        assert not stage.kept

    async def test_nobody_comes_back_twice(self, stage: Stage, alice: Principal) -> None:
        answer = await stage.consent(await stage.begin(alice))
        await stage.authorizations.finish(alice, answer)
        with pytest.raises(AuthorizationNotFound):
            await stage.authorizations.finish(alice, answer)
        assert len(stage.authorization.records.asked) == 1

    async def test_not_even_at_the_same_time(self, stage: Stage, alice: Principal) -> None:
        answer = await stage.consent(await stage.begin(alice))
        finishing = (stage.authorizations.finish(alice, answer) for _ in range(5))
        ended = await asyncio.gather(*finishing, return_exceptions=True)
        assert sum(isinstance(each, Finished) for each in ended) == 1
        assert sum(isinstance(each, AuthorizationNotFound) for each in ended) == 4
        assert len(stage.authorization.records.asked) == 1

    async def test_nor_too_late(
        self, stage: Stage, alice: Principal, superuser: asyncpg.Connection
    ) -> None:
        answer = await stage.consent(await stage.begin(alice))
        await superuser.execute(
            "UPDATE authorizations SET expires_at = now() WHERE user_id = $1", alice.user_id
        )
        with pytest.raises(AuthorizationNotFound):
            await stage.authorizations.finish(alice, answer)

    @pytest.mark.parametrize("state", ["", "x" * 43, "\udcff", "ä" * 10_000])
    async def test_a_state_that_was_made_up_is_nobodys(
        self, stage: Stage, alice: Principal, state: str
    ) -> None:
        with pytest.raises(AuthorizationNotFound):
            await stage.authorizations.finish(alice, Answer(state, "code"))


class TestWhoAnswers:
    async def test_another_issuer_is_not_given_the_code(
        self, stage: Stage, alice: Principal
    ) -> None:
        stage.authorization.behaviour.answers_as = "https://evil.example.com"
        assert failed(await stage.authorize(alice)) is OAuthIssuerMismatch
        assert not stage.authorization.records.asked

    async def test_nor_one_that_keeps_silent_who_said_it_would_not(
        self, stage: Stage, alice: Principal
    ) -> None:
        answer = await stage.consent(await stage.begin(alice))
        finished = await stage.authorizations.finish(alice, replace(answer, issuer=None))
        assert failed(finished) is OAuthIssuerMismatch
        assert not stage.authorization.records.asked

    async def test_one_that_never_says_it_is_believed(self, stage: Stage, alice: Principal) -> None:
        stage.authorization.behaviour.names_issuer = False
        assert (await stage.authorize(alice)).failure is None

    async def test_but_not_under_another_name(self, stage: Stage, alice: Principal) -> None:
        stage.authorization.behaviour.names_issuer = False
        answer = await stage.consent(await stage.begin(alice))
        lying = replace(answer, issuer="https://evil.example.com")
        finished = await stage.authorizations.finish(alice, lying)
        assert failed(finished) is OAuthIssuerMismatch


class TestNothingComesOfIt:
    async def test_the_person_says_no(self, stage: Stage, alice: Principal) -> None:
        stage.authorization.behaviour.consents = False
        assert failed(await stage.authorize(alice)) is AuthorizationDenied
        assert not stage.kept

    @pytest.mark.parametrize(
        "token",
        [
            {"token_type": "mac"},
            {"token_type": None},
            {"access_token": ""},
            {"access_token": "two\r\nlines"},
            {"access_token": ["a", "list"]},
            {"access_token": "x" * 20_000},
            {"refresh_token": 7},
            {"expires_in": "soon"},
            {"expires_in": -1},
            {"error": "server_error"},
        ],
        ids=str,
    )
    async def test_what_comes_for_the_code_is_no_token(
        self, stage: Stage, alice: Principal, token: dict[str, object]
    ) -> None:
        stage.authorization.behaviour.token = token
        finished = await stage.authorize(alice)
        assert failed(finished) in {AuthorizationFailed, AuthorizationServerUnavailable}
        assert not stage.kept

    async def test_the_answer_is_lost(self, stage: Stage, alice: Principal) -> None:
        stage.authorization.behaviour.loses_answers = True
        assert failed(await stage.authorize(alice)) is AuthorizationServerUnavailable

    async def test_the_connection_was_changed_meanwhile(
        self, stage: Stage, alice: Principal
    ) -> None:
        url = await stage.begin(alice)
        stage.is_changed = True
        finished = await stage.authorizations.finish(alice, await stage.consent(url))
        assert failed(finished) is AuthorizationOutdated
        # What was given for nothing is given back.
        assert not stage.kept
        assert all(token.is_revoked for token in stage.authorization.records.tokens)

    async def test_the_operator_has_set_up_another_server_meanwhile(
        self, stage: Stage, alice: Principal
    ) -> None:
        answer = await stage.consent(await stage.begin(alice))
        stage.server = replace(stage.server, version="v2")
        finished = await stage.authorizations.finish(alice, answer)
        assert failed(finished) is AuthorizationOutdated
        assert not stage.authorization.records.asked

    async def test_whatever_came_of_it_it_is_over(self, stage: Stage, alice: Principal) -> None:
        stage.authorization.behaviour.consents = False
        url = await stage.begin(alice)
        await stage.authorizations.finish(alice, await stage.consent(url))
        with pytest.raises(AuthorizationNotFound):
            await stage.authorizations.finish(
                alice, Answer(parameters(url)["state"], "code", None, stage.authorization.url)
            )
