"""``stoa``'s commands as a person types them."""

from __future__ import annotations

import subprocess

from tests.support.development import STOA, stoa
from tests.support.held_ports import held_port

COMMANDS = ("dev", "web", "worker", "migrate", "gateway", "model", "admin", "bench")


class TestHelp:
    async def test_names_every_command(self) -> None:
        async with stoa("--help") as command:
            assert await command.ended() == 0
        assert all(name in command.output for name in COMMANDS)

    async def test_each_command_says_what_it_does_and_hides_what_is_not_for_people(self) -> None:
        for name in COMMANDS:
            async with stoa(name, "--help") as command:
                assert await command.ended() == 0
            assert "Usage" in command.output
            assert "--turn-socket" not in command.output

    def test_loads_nothing_heavy(self) -> None:
        code = (
            "import sys; import app.cli.main;"
            " print(*({'fastapi', 'langgraph', 'sqlalchemy', 'pydantic'} & set(sys.modules)))"
        )
        loaded = subprocess.run([STOA[0], "-c", code], capture_output=True, text=True, check=True)
        assert loaded.stdout.strip() == ""


class TestAFailure:
    async def test_a_missing_setting_is_named_and_is_wrong_use(self) -> None:
        async with stoa("migrate") as command:
            assert await command.ended() == 2
        assert "Set STOA_OWNER_DATABASE_URL" in command.output
        assert "Traceback" not in command.output

    async def test_an_unknown_option_is_wrong_use(self) -> None:
        async with stoa("web", "--prot", "1") as command:
            assert await command.ended() == 2

    async def test_a_database_that_is_not_there_is_one_message_without_its_password(self) -> None:
        names = ("OWNER_", "", "DISPATCH_", "MAINTENANCE_")
        with held_port() as port:
            environment = {
                f"STOA_{name}DATABASE_URL": f"postgresql://r{i}:hushhush@127.0.0.1:{port}/stoa"
                for i, name in enumerate(names)
            }
            async with stoa("migrate", environment=environment) as command:
                assert await command.ended() == 1
        assert "STOA_OWNER_DATABASE_URL" in command.output
        assert "hushhush" not in command.output
        assert "Traceback" not in command.output
