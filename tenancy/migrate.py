"""Brings a database to the present schema: roles, revisions, functions, policies, grants.

Two at once are safe: a session-level advisory lock lets one work and the other find it done.
Everything after the roles is one transaction, so a failure leaves the old schema in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.script.revision import ResolutionError
from alembic.util import CommandError
from sqlalchemy.engine import make_url

from alembic import command
from tenancy.errors import StoaError
from tenancy.rls import OWNER_ROLE, Roles, security_statements
from tenancy.run_states import transition_statement
from tenancy.vectors import CREATE_EXTENSION, FIND_EXTENSION, similarity_statement

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection

SCRIPTS = Path(__file__).resolve().parent.parent / "alembic"
FUNCTIONS = Path(__file__).resolve().parent / "sql"
LOCK_KEY = 0x53746F61  # "Stoa"
LOCK_TIMEOUT = "5s"
_CREATE_SCHEMAS = "CREATE SCHEMA IF NOT EXISTS tenant; CREATE SCHEMA IF NOT EXISTS dispatch;"
"""Whichever file of functions comes first."""
_LET_THE_OWNER_SEE = """
DO $$
DECLARE t regclass;
BEGIN
  FOR t IN SELECT oid FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relforcerowsecurity
  LOOP
    EXECUTE 'ALTER TABLE ' || t || ' NO FORCE ROW LEVEL SECURITY';
  END LOOP;
END $$
"""
"""No policy is the owner's: where they are forced, a revision that changes rows would find none,
and say nothing. They are forced again before the same transaction ends."""
_DROP_FUNCTIONS = """
DO $$
DECLARE f regprocedure;
BEGIN
  FOR f IN SELECT oid::regprocedure FROM pg_proc
    WHERE pronamespace IN (SELECT oid FROM pg_namespace WHERE nspname IN ('tenant', 'dispatch'))
  LOOP
    BEGIN
      EXECUTE 'DROP FUNCTION ' || f;
    EXCEPTION WHEN dependent_objects_still_exist THEN
      NULL;  -- a policy or a column default needs it: it is replaced in place
    END;
  END LOOP;
END $$
"""
"""Functions are made anew each time, so none of an older version stays callable."""


class MigrationFailed(StoaError):
    """The database cannot be brought to the present schema; the message says what to do."""

    code = "migration_failed"


@dataclass(frozen=True, slots=True)
class RoleDsns:
    """The DSNs of the three login roles. Roles that are missing are created from them."""

    service: str
    dispatch: str
    maintenance: str

    def roles(self) -> Roles:
        """The names of the roles.

        Raises:
            MigrationFailed: a DSN names no user, or two name the same.
        """
        names = [make_url(dsn).username for dsn in (self.service, self.dispatch, self.maintenance)]
        service, dispatch, maintenance = (name or "" for name in names)
        if not all(names) or len(set(names)) != len(names):
            raise MigrationFailed("The three database URLs must each name a role of their own.")
        return Roles(service, dispatch, maintenance)


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration, without a file."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    if connection is not None:
        config.attributes["connection"] = connection
    return config


def head_revision() -> str:
    """The revision that this code was written for."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    if head is None:
        raise MigrationFailed("No revisions were found.")
    return head


def driver_url(dsn: str, driver: str) -> URL:
    """A PostgreSQL DSN as a SQLAlchemy URL for one driver."""
    return make_url(dsn).set(drivername=f"postgresql+{driver}")


def migrate(owner_dsn: str, dsns: RoleDsns) -> str:
    """Migrate to the newest revision and return its name.

    Raises:
        MigrationFailed: the roles are not as they must be, or a newer version was here.
        sqlalchemy.exc.SQLAlchemyError: the database refused; nothing was changed.
    """
    roles = dsns.roles()
    engine = sa.create_engine(driver_url(owner_dsn, "psycopg"), poolclass=sa.NullPool)
    with engine.connect() as connection:
        connection.execute(sa.select(sa.func.pg_advisory_lock(LOCK_KEY)))
        connection.commit()
        try:
            with connection.begin():
                _create_roles(connection, dsns)
            with connection.begin():
                connection.exec_driver_sql(CREATE_EXTENSION)
            with connection.begin():
                _apply(connection, roles)
        finally:
            connection.rollback()
            connection.execute(sa.text("RESET ROLE"))
            connection.execute(sa.select(sa.func.pg_advisory_unlock(LOCK_KEY)))
            connection.commit()
    engine.dispose()
    return head_revision()


def create_database(owner_dsn: str, name: str) -> None:
    """Create an empty database on the owner DSN's server."""
    _on_the_server(owner_dsn, f"CREATE DATABASE {_quoted(name)}")


def drop_database(owner_dsn: str, name: str, dsns: RoleDsns) -> None:
    """Drop a database, whoever is connected to it, and the roles that were made for it alone."""
    _on_the_server(owner_dsn, f"DROP DATABASE IF EXISTS {_quoted(name)} WITH (FORCE)")
    roles = dsns.roles()
    for role in (roles.service, roles.dispatch, roles.maintenance):
        _on_the_server(owner_dsn, f"DROP ROLE IF EXISTS {_quoted(role)}")


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _on_the_server(owner_dsn: str, statement: str) -> None:
    """Run what cannot be in a transaction."""
    engine = sa.create_engine(
        driver_url(owner_dsn, "psycopg"), poolclass=sa.NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


def _create_roles(connection: Connection, dsns: RoleDsns) -> None:
    """Create the roles that are missing.

    They belong to the whole server, so another database's migration may be creating the same
    ones: no lock of one database would hold there, hence the exception handler in SQL.
    """
    _assert_restricted(connection, dsns.roles())
    _create_role(connection, OWNER_ROLE, "NOLOGIN", None)
    for dsn in (dsns.service, dsns.dispatch, dsns.maintenance):
        url = make_url(dsn)
        _create_role(connection, str(url.username), "LOGIN", url.password)
    connection.execute(sa.text(f'GRANT "{OWNER_ROLE}" TO CURRENT_USER'))
    roles = dsns.roles()
    database = connection.execute(sa.text("SELECT quote_ident(current_database())")).scalar_one()
    connection.execute(sa.text(f'GRANT CREATE ON DATABASE {database} TO "{OWNER_ROLE}"'))
    connection.execute(sa.text(f'GRANT USAGE, CREATE ON SCHEMA public TO "{OWNER_ROLE}"'))
    connection.execute(sa.text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    # The schema is not stoa_owner's to grant, hence here.
    for name in (roles.service, roles.dispatch, roles.maintenance):
        connection.execute(sa.text(f'GRANT USAGE ON SCHEMA public TO "{name}"'))
    connection.execute(sa.text(f"REVOKE TEMPORARY ON DATABASE {database} FROM PUBLIC"))


def _assert_restricted(connection: Connection, roles: Roles) -> None:
    """Give nothing to a role that may too much: the right ones would lose it, unnoticed."""
    too_much = connection.execute(
        sa.text(
            "SELECT rolname FROM pg_roles WHERE rolname = ANY(:names)"
            " AND (rolsuper OR rolbypassrls OR rolcreaterole OR rolcreatedb) ORDER BY rolname"
        ),
        {"names": [roles.service, roles.dispatch, roles.maintenance]},
    ).scalars()
    if names := ", ".join(too_much):
        raise MigrationFailed(
            f"These roles may do too much for what their database URLs are for: {names}."
            " Name roles of their own in them; those that are missing are created."
        )


def _create_role(connection: Connection, name: str, login: str, password: str | None) -> None:
    exists = connection.execute(
        sa.text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}
    ).scalar()
    if exists:
        return
    quoted = connection.execute(
        sa.text("SELECT quote_ident(:name), quote_nullable(:password)"),
        {"name": name, "password": password},
    ).one()
    connection.exec_driver_sql(
        f"DO $$ BEGIN CREATE ROLE {quoted[0]} {login} NOSUPERUSER NOCREATEDB NOCREATEROLE"
        f" NOREPLICATION NOBYPASSRLS PASSWORD {quoted[1]};"
        " EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
    )


def _apply(connection: Connection, roles: Roles) -> None:
    connection.execute(sa.text(f'SET ROLE "{OWNER_ROLE}"'))
    connection.execute(sa.text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
    if MigrationContext.configure(connection).get_current_revision() != head_revision():
        _run_script(connection, _LET_THE_OWNER_SEE)
    try:
        command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        if isinstance(error.__cause__, ResolutionError):
            raise MigrationFailed(
                "A newer version has migrated this database. Run that one, or restore a backup."
            ) from error
        raise
    _run_script(connection, _CREATE_SCHEMAS + _DROP_FUNCTIONS)
    # They call each other: in which order they are made is of no interest.
    connection.execute(sa.text("SET LOCAL check_function_bodies = off"))
    _run_script(connection, transition_statement())
    pgvector = connection.exec_driver_sql(FIND_EXTENSION).scalar()
    _run_script(connection, similarity_statement(pgvector))
    for file in sorted(FUNCTIONS.glob("*.sql")):
        _run_script(connection, file.read_text(encoding="utf-8"))
    _run_script(connection, ";\n".join(security_statements(roles)))


def _run_script(connection: Connection, script: str) -> None:
    """Run several statements as they stand, in one round trip."""
    connection.exec_driver_sql(script.replace("%", "%%"))
