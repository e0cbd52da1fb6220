"""What the model calls a server's tool by."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from app.tools.mcp.names import tool_name
from app.tools.names import SERVER_NAME

SERVERS = st.from_regex(SERVER_NAME, fullmatch=True)


class TestAName:
    def test_says_whose_tool_it_is(self) -> None:
        assert tool_name("notes", "write_note") == "notes__write_note"

    def test_of_two_servers_with_the_same_tool_is_not_the_same(self) -> None:
        assert tool_name("a", "write") != tool_name("b", "write")

    def test_that_had_to_be_changed_tells_from_which(self) -> None:
        assert tool_name("notes", "write note") != tool_name("notes", "write.note")
        assert tool_name("notes", "write note").startswith("notes__write_note-")

    @given(server=SERVERS, tool=st.text())
    def test_is_one_that_model_apis_take(self, server: str, tool: str) -> None:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name(server, tool))

    @given(one=SERVERS, other=SERVERS, first=st.text(), second=st.text())
    def test_never_stands_for_another_servers_tool(
        self, one: str, other: str, first: str, second: str
    ) -> None:
        if one != other:
            assert tool_name(one, first) != tool_name(other, second)
