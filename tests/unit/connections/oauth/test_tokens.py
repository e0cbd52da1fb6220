"""What a token endpoint's answer may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.connections.oauth.tokens import Grant, Tokens, UnusableToken

GRANT = Grant("https://as.example", "https://as.example/token", "c", "none", "https://mcp.example")
ANSWER = {"token_type": "Bearer", "access_token": "a"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@pytest.mark.parametrize("named", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_is_taken_however_it_is_written(named: str) -> None:
    tokens = Tokens.given(GRANT, {**ANSWER, "token_type": named})
    assert tokens.headers() == {"Authorization": "Bearer a"}


@pytest.mark.parametrize(
    ("told", "kept"), [(60, 60.0), ("60", 60.0), (0, 0.0), (1e12, 366 * 24 * 3600.0)]
)
def test_a_lifetime_is_seconds(told: object, kept: float) -> None:
    assert Tokens.given(GRANT, {**ANSWER, "expires_in": told}).expires_in == kept


@pytest.mark.parametrize("told", [True, -1, "soon", [60], float("nan"), float("inf"), "1e999"])
def test_or_none_is_taken(told: object) -> None:
    with pytest.raises(UnusableToken):
        Tokens.given(GRANT, {**ANSWER, "expires_in": told})


def test_what_was_granted_is_what_the_answer_says() -> None:
    assert Tokens.given(GRANT, {**ANSWER, "scope": "less"}).grant.scope == "less"


@given(st.dictionaries(st.sampled_from([*ANSWER, "refresh_token", "expires_in", "scope"]), JSON))
def test_whatever_comes_is_a_token_that_a_header_can_carry_or_none(
    answer: dict[str, object],
) -> None:
    try:
        tokens = Tokens.given(GRANT, {**ANSWER, **answer})
    except UnusableToken:
        return
    value = tokens.headers()["Authorization"]
    assert value.isascii()
    assert value.isprintable()
    assert len(value.split(" ")) == 2


@given(st.text(), st.none() | st.text())
def test_what_is_kept_can_be_read_again(access: str, refresh: str | None) -> None:
    tokens = Tokens(GRANT, access, refresh)
    assert Tokens.read(tokens.plain()) == tokens


def test_no_secret_is_shown() -> None:
    shown = repr(Tokens(GRANT, "canary-access", "canary-refresh"))
    assert "canary" not in shown
