"""Tokens renewed and given back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.connections.oauth.errors import AuthorizationLost, AuthorizationServerUnavailable
from app.connections.oauth.tokens import Tokens
from tenancy.principal import Principal
from tests.integration.connections.oauth.stage import Stage
from tests.support.oauth_server.resource import ProtectedMcpServer


@pytest.fixture
async def tokens(stage: Stage, alice: Principal) -> Tokens:
    """What an authorization of Alice's led to."""
    return await stage.tokens(alice)


def is_good(protected: ProtectedMcpServer, tokens: Tokens) -> bool:
    """Whether the MCP server would take them."""
    token = protected.authorization.records.by_access(tokens.access_token)
    return token is not None and token.is_good()


class TestRenewing:
    async def test_both_tokens_are_new_and_for_the_same(self, stage: Stage, tokens: Tokens) -> None:
        new = await stage.oauth.refresh(stage.server, tokens)
        assert new.access_token != tokens.access_token
        assert new.refresh_token not in {None, tokens.refresh_token}
        assert new.grant == tokens.grant
        assert is_good(stage.protected, new)
        asked = stage.authorization.records.asked[-1]
        assert asked["grant_type"] == "refresh_token"
        assert asked["resource"] == stage.protected.url

    async def test_as_often_as_need_be(self, stage: Stage, tokens: Tokens) -> None:
        for _ in range(3):
            tokens = await stage.oauth.refresh(stage.server, Tokens.read(tokens.plain()))
        assert is_good(stage.protected, tokens)

    async def test_a_refresh_token_stays_where_no_other_comes(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        stage.authorization.behaviour.rotates = False
        new = await stage.oauth.refresh(stage.server, tokens)
        assert new.refresh_token == tokens.refresh_token
        assert new.access_token != tokens.access_token

    async def test_the_answer_is_lost_and_with_it_the_authorization(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        stage.authorization.behaviour.loses_answers = True
        with pytest.raises(AuthorizationServerUnavailable):
            await stage.oauth.refresh(stage.server, tokens)
        # The token was used up there: whoever comes with it again is taken for a thief.
        stage.authorization.behaviour.loses_answers = False
        for _ in range(2):
            with pytest.raises(AuthorizationLost):
                await stage.oauth.refresh(stage.server, tokens)

    async def test_the_person_has_taken_it_back_there(self, stage: Stage, tokens: Tokens) -> None:
        stage.authorization.records.revoke_all()
        with pytest.raises(AuthorizationLost):
            await stage.oauth.refresh(stage.server, tokens)

    @pytest.mark.parametrize(
        ("said", "meant"),
        [
            ("invalid_grant", AuthorizationLost),
            ("invalid_client", AuthorizationLost),
            ("invalid_target", AuthorizationLost),
            ("temporarily_unavailable", AuthorizationServerUnavailable),
            ("server_error", AuthorizationServerUnavailable),
        ],
    )
    async def test_what_an_error_means(
        self, stage: Stage, tokens: Tokens, said: str, meant: type[Exception]
    ) -> None:
        stage.authorization.behaviour.refuses_with = said
        with pytest.raises(meant):
            await stage.oauth.refresh(stage.server, tokens)

    async def test_nobody_is_asked_without_a_refresh_token(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        asked = len(stage.authorization.records.asked)
        with pytest.raises(AuthorizationLost):
            await stage.oauth.refresh(stage.server, replace(tokens, refresh_token=None))
        assert len(stage.authorization.records.asked) == asked

    async def test_nor_as_a_client_that_the_service_is_no_more(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        asked = len(stage.authorization.records.asked)
        with pytest.raises(AuthorizationLost):
            await stage.oauth.refresh(stage.changed(client_id="another"), tokens)
        assert len(stage.authorization.records.asked) == asked

    async def test_nor_where_the_operator_lets_nobody_be_asked_any_more(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        asked = len(stage.authorization.records.asked)
        with pytest.raises(AuthorizationServerUnavailable):
            await stage.oauth.refresh(stage.changed(origins=()), tokens)
        assert len(stage.authorization.records.asked) == asked


class TestGivingBack:
    async def test_nothing_can_be_done_with_them_any_more(
        self, stage: Stage, tokens: Tokens
    ) -> None:
        await stage.oauth.revoke(stage.server, tokens)
        given_back = stage.authorization.records.given_back
        assert given_back == [tokens.refresh_token, tokens.access_token]
        assert not is_good(stage.protected, tokens)

    async def test_nobody_is_there_to_take_them(self, stage: Stage, tokens: Tokens) -> None:
        gone = replace(tokens.grant, revocation_endpoint="http://127.0.0.1:1/revoke")
        server = stage.changed(origins=("http://127.0.0.1:1",))
        await stage.oauth.revoke(server, replace(tokens, grant=gone))
        assert not stage.authorization.records.given_back

    async def test_the_server_takes_none(self, stage: Stage, tokens: Tokens) -> None:
        grant = replace(tokens.grant, revocation_endpoint=None)
        await stage.oauth.revoke(stage.server, replace(tokens, grant=grant))
        assert not stage.authorization.records.given_back
