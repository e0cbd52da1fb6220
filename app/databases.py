"""From the service's settings to how each database role is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenancy.database.engine import DatabaseSettings

if TYPE_CHECKING:
    from app.settings import Settings


def service_settings(settings: Settings) -> DatabaseSettings:
    """The service role: everything done for a user."""
    return _role(settings, settings.required("database_url"))


def dispatch_settings(settings: Settings) -> DatabaseSettings:
    """The dispatch role: queue and leases. A few connections are enough."""
    return _role(settings, settings.required("dispatch_database_url"), pool_size=4)


def maintenance_settings(settings: Settings) -> DatabaseSettings:
    """The maintenance role: what happens to everybody's rows without reading them."""
    return _role(settings, settings.required("maintenance_database_url"), pool_size=2)


def listen_dsn(settings: Settings) -> str:
    """The direct DSN for LISTEN and NOTIFY."""
    return settings.required(
        "database_url" if settings.listen_database_url is None else "listen_database_url"
    )


def _role(settings: Settings, dsn: str, pool_size: int | None = None) -> DatabaseSettings:
    return DatabaseSettings(
        dsn=dsn,
        pool_size=pool_size or settings.database_pool_size,
        prepared_statements=settings.database_prepared_statements,
        # A transaction frozen with its worker must not hold off the reaper.
        idle_in_transaction_timeout=min(10.0, settings.lease_seconds / 3),
    )
