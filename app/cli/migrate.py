"""``stoa migrate``: the database's schema, roles and policies."""

from __future__ import annotations

import typer

from app.cli.turn import Turn, TurnSocket


def command(turn_socket: TurnSocket = None) -> None:
    """Bring the database to this version: roles, tables, policies. Two at once are safe.

    Connects with STOA_OWNER_DATABASE_URL and creates the roles that STOA_DATABASE_URL,
    STOA_DISPATCH_DATABASE_URL and STOA_MAINTENANCE_DATABASE_URL name, where they are missing.
    """
    from sqlalchemy.exc import DBAPIError

    from app.settings import load_settings
    from tenancy.migrate import MigrationFailed, RoleDsns, migrate

    turn = Turn(turn_socket)
    settings = load_settings()
    owner = settings.required("owner_database_url")
    roles = RoleDsns(
        service=settings.required("database_url"),
        dispatch=settings.required("dispatch_database_url"),
        maintenance=settings.required("maintenance_database_url"),
    )
    turn.wait()
    try:
        revision = migrate(owner, roles)
    except DBAPIError as error:
        raise MigrationFailed(
            f"The database of STOA_OWNER_DATABASE_URL refused: {str(error.orig).strip()}"
        ) from error
    typer.echo(f"The database is at revision {revision}.")
