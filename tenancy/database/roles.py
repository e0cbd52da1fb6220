"""What each database role must be. Every process asserts its own before it serves anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from tenancy.database.engine import LoginRefused, create_engine, domain_errors, login_refused
from tenancy.errors import StoaError
from tenancy.migrate import head_revision
from tenancy.rls import OWNER_ROLE

if TYPE_CHECKING:
    from tenancy.database.engine import DatabaseSettings

_FACTS = sa.text(
    """
    SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
           EXISTS (SELECT 1 FROM pg_roles o WHERE o.rolname = :owner
                   AND pg_has_role(r.oid, o.oid, 'MEMBER')) AS owner_member,
           EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
                   AND c.relkind IN ('r', 'p')
                   AND has_table_privilege(c.oid, 'TRUNCATE')) AS truncates,
           EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass('public.runs')
                   AND a.attname = 'request'
                   AND has_column_privilege(a.attrelid, a.attnum, 'SELECT')) AS reads_content,
           coalesce(has_table_privilege(to_regclass('public.alembic_version'), 'SELECT'), false)
             AS reads_revision
    FROM pg_roles r WHERE r.rolname = current_user
    """
)
_REVISION = sa.text("SELECT version_num FROM public.alembic_version")


class WrongRole(StoaError):
    """A database role may do more, or less, than this process must be able to."""

    code = "wrong_database_role"


class WrongRevision(StoaError):
    """The database's schema is not the one this code was written for."""

    code = "wrong_revision"
    message = "The database is not migrated to this version. Run `stoa migrate`."


async def assert_role(settings: DatabaseSettings, *, reads_content: bool) -> None:
    """Check that the DSN's role is restricted as designed and the schema is present.

    Args:
        settings: how this process connects.
        reads_content: True for the service role; the others must not be able to.

    Raises:
        WrongRole: it is a superuser, bypasses policies, owns tables, or reads what it must not.
        WrongRevision: the schema is older or newer than the code.
        LoginRefused: there is no such role or database, or the password is wrong.
        DatabaseUnavailable: Postgres cannot be reached.
    """
    engine = create_engine(settings)
    try:
        with domain_errors():
            async with engine.connect() as connection:
                facts = (await connection.execute(_FACTS, {"owner": OWNER_ROLE})).one()
                _check(facts, reads_content=reads_content)
                if not facts.reads_revision:  # never migrated: there is nothing to ask
                    raise WrongRevision
                if (await connection.execute(_REVISION)).scalar() != head_revision():
                    raise WrongRevision
    except LoginRefused as error:
        raise login_refused(settings.dsn) from error
    finally:
        await engine.dispose()


def _check(facts: sa.Row[tuple[object, ...]], *, reads_content: bool) -> None:
    too_much = [
        name
        for name in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb")
        if getattr(facts, name)
    ]
    if facts.owner_member:
        too_much.append(f"member of {OWNER_ROLE}")
    if facts.truncates:
        too_much.append("TRUNCATE")
    if facts.reads_content and not reads_content:
        too_much.append("SELECT on what people say")
    if too_much:
        raise WrongRole(
            f"The database role {facts.rolname} may do too much ({', '.join(too_much)})."
            " Use the role that `stoa migrate` creates."
        )
    if reads_content and not facts.reads_content:
        raise WrongRevision
