"""A web process starts with the roles that operators' pages need, or says what is wrong."""

from __future__ import annotations

import pytest

from app.api.process import serve_web
from app.settings import SettingsError
from tenancy.database.roles import WrongRole
from tests.support.service import RunningService

DSNS = ("dispatch_database_url", "maintenance_database_url")


class TestAWebProcess:
    @pytest.mark.parametrize("name", DSNS)
    async def test_asks_for_a_database_url_that_is_missing(
        self, service: RunningService, name: str
    ) -> None:
        settings = service.settings.model_copy(update={name: None})
        with pytest.raises(SettingsError, match=f"Set STOA_{name.upper()}: DSN of the"):
            await serve_web(settings, "127.0.0.1", 0)

    @pytest.mark.parametrize(
        ("name", "other", "said"),
        [
            (DSNS[0], DSNS[1], "Name the dispatch role."),
            (DSNS[1], DSNS[0], "Name the maintenance role."),
            (DSNS[0], "database_url", "may do too much"),
            (DSNS[1], "database_url", "may do too much"),
        ],
    )
    async def test_refuses_another_roles(
        self, service: RunningService, name: str, other: str, said: str
    ) -> None:
        settings = service.settings.model_copy(update={name: getattr(service.settings, other)})
        with pytest.raises(WrongRole, match=said):
            await serve_web(settings, "127.0.0.1", 0)

    async def test_ends_where_its_metrics_port_is_taken(self, service: RunningService) -> None:
        port = service.settings.metrics_port
        settings = service.settings.model_copy(update={"web_metrics_port": port})
        with pytest.raises(SettingsError, match=f"STOA_WEB_METRICS_PORT: cannot .*:{port}"):
            await serve_web(settings, "127.0.0.1", 0)
