"""Reads the database's catalogue back and says where it departs from ``tenancy.rls``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Iterator

import asyncpg

from tenancy.rls import (
    ALL,
    EVERY_ROW,
    OWN_IDENTITIES,
    OWN_IDENTITY,
    OWN_RECORD,
    OWN_ROWS,
    OWN_ROWS_ERASED,
    OWN_ROWS_RETURNED,
    OWN_TOMBSTONE,
    OWN_USAGE_OVER,
    OWN_USER_ERASED,
    OWNER_ROLE,
    RULES,
    Access,
    Roles,
)

SCHEMAS = ("public", "tenant", "dispatch")
CHECKED = ("INSERT", "UPDATE")

# As PostgreSQL prints the declaration's expressions.
_OWN = "(user_id = ( SELECT tenant.user_id() AS user_id))"
_IDENTITY = "(identity = ( SELECT tenant.identity() AS identity))"
PRINTED = {
    OWN_ROWS: _OWN,
    OWN_IDENTITY: _IDENTITY,
    OWN_RECORD: "(reference = ( SELECT tenant.own_reference() AS own_reference))",
    OWN_TOMBSTONE: "(identity_hash = ANY (tenant.identity_hashes()))",
    OWN_ROWS_ERASED: f"({_OWN} AND ( SELECT tenant.is_erasing() AS is_erasing))",
    OWN_ROWS_RETURNED: f"({_OWN} AND ( SELECT tenant.has_tombstone() AS has_tombstone))",
    OWN_USAGE_OVER: (
        f"({_OWN} AND (( SELECT tenant.is_erasing() AS is_erasing) OR (hour < (( SELECT"
        " clock_timestamp() AS clock_timestamp) - '62 days'::interval))))"
    ),
    OWN_USER_ERASED: f"({_OWN} AND (state = 'erasing'::user_state))",
    OWN_IDENTITIES: (
        "\nCASE\n    WHEN (COALESCE(current_setting('app.identity'::text, true), ''::text)"
        f" <> ''::text) THEN {_IDENTITY}\n    ELSE {_OWN}\nEND"
    ),
    EVERY_ROW: "true",
}

FEW_ROWS = {
    ("model_calls", ("user_id", "run_id")),
    ("model_calls", ("user_id", "model")),
    ("authorizations", ("user_id", "server")),
    ("model_users", ("model",)),
}
"""Foreign keys of which one person has a few rows at a time, which their primary key finds. A model
is never deleted."""

Grant = tuple[str, str, str, str]
"""Object, column (or ''), grantee, privilege."""


async def complaints(connection: asyncpg.Connection, roles: Roles) -> list[str]:
    """Every departure from the declaration; empty when there is none."""
    found: list[str] = []
    for part in (
        _tables,
        _policies,
        _keys,
        _foreign_keys,
        _indexes,
        _erasures,
        _views,
        _functions,
        _relation_grants,
        _schema_grants,
        _owner,
        _members,
    ):
        found += [line async for line in part(connection, roles)]
    return found


async def personal_tables(connection: asyncpg.Connection) -> list[str]:
    """Every table that has a ``user_id``."""
    rows = await connection.fetch(
        """
        SELECT c.oid::regclass::text AS name FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id' AND NOT attisdropped
        WHERE c.relkind IN ('r', 'p') AND c.relnamespace::regnamespace::text = ANY($1)
        ORDER BY 1
        """,
        SCHEMAS,
    )
    return [row["name"] for row in rows]


async def _tables(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    declared = {table for table, rules in RULES.items() if rules.personal}
    personal = set(await personal_tables(connection))
    for table in personal ^ declared:
        yield f"{table}: declared as personal and having a user_id do not agree"
    rows = await connection.fetch(
        """
        SELECT oid::regclass::text AS name, relkind::text, relrowsecurity, relforcerowsecurity,
               relowner::regrole::text AS owner
        FROM pg_class WHERE relnamespace::regnamespace::text = ANY($1)
          AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
        """,
        SCHEMAS,
    )
    for row in rows:
        name = row["name"]
        if row["relkind"] in ("r", "p") and name not in RULES:
            yield f"{name}: not declared"
        if row["owner"] != OWNER_ROLE:
            yield f"{name}: owned by {row['owner']}"
        secured = name in personal or (name in RULES and RULES[name].secured)
        if secured and not (row["relrowsecurity"] and row["relforcerowsecurity"]):
            yield f"{name}: row security is not enabled and forced"


def _declared_access(roles: Roles) -> Iterator[tuple[str, str, Access, bool]]:
    for table, rules in RULES.items():
        for role, access in (
            (roles.service, rules.service),
            (roles.dispatch, rules.dispatch),
            (roles.maintenance, rules.maintenance),
        ):
            if access is not None:
                yield table, role, access, rules.secured


async def _policies(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    expected = set()
    for table, role, access, secured in _declared_access(roles):
        for command in access.grants if secured else ():
            printed = PRINTED[access.rows_of(command)]
            using = None if command == "INSERT" else printed
            check = printed if command in CHECKED else None
            expected.add((table, (role,), command, "PERMISSIVE", using, check))
    rows = await connection.fetch("SELECT * FROM pg_policies WHERE schemaname = ANY($1)", SCHEMAS)
    present = {
        (r["tablename"], tuple(r["roles"]), r["cmd"], r["permissive"], r["qual"], r["with_check"])
        for r in rows
    }
    for policy in expected - present:
        yield f"policy missing: {policy}"
    for policy in present - expected:
        yield f"policy not declared: {policy}"


async def _keys(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    for table in await personal_tables(connection):
        first = await connection.fetchval(
            """
            SELECT a.attname FROM pg_constraint k
            JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
            WHERE k.conrelid = $1::text::regclass AND k.contype = 'p'
            """,
            table,
        )
        if first != "user_id":
            yield f"{table}: the primary key begins with {first}"


async def _foreign_keys(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    personal = set(await personal_tables(connection))
    rows = await connection.fetch(
        """
        SELECT k.conrelid::regclass::text AS child, k.confrelid::regclass::text AS parent,
               a.attname AS child_first, f.attname AS parent_first
        FROM pg_constraint k
        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = k.conkey[1]
        JOIN pg_attribute f ON f.attrelid = k.confrelid AND f.attnum = k.confkey[1]
        WHERE k.contype = 'f'
        """
    )
    parents: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        child, parent = row["child"], row["parent"]
        parents[child].add(parent)
        both = child in personal and parent in personal
        if both and (row["child_first"], row["parent_first"]) != ("user_id", "user_id"):
            yield f"{child} -> {parent}: the foreign key does not begin with user_id"
        if parent in personal and child not in personal:
            yield f"{child} -> {parent}: what is nobody's would keep somebody's row"
    for table in personal - {"users"}:
        reached, frontier = set(), {table}
        while frontier:
            reached |= frontier
            frontier = {p for t in frontier for p in parents[t]} - reached
        if "users" not in reached:
            yield f"{table}: no path of foreign keys to users"


async def _indexes(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    """Foreign keys of people's rows that nothing finds: each row deleted would read a table."""
    personal = await personal_tables(connection)
    rows = await connection.fetch(
        """
        SELECT k.conrelid::regclass::text AS child, k.confrelid::regclass::text AS parent,
               ARRAY(
                 SELECT a.attname FROM unnest(k.conkey) WITH ORDINALITY AS n (attnum, nth)
                 JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.attnum
                 ORDER BY n.nth
               ) AS columns
        FROM pg_constraint k
        WHERE k.contype = 'f' AND k.conrelid::regclass::text = ANY($1) AND NOT EXISTS (
          SELECT FROM pg_index i
          WHERE i.indrelid = k.conrelid AND i.indisvalid
            AND (i.indkey::int2[])[0:cardinality(k.conkey) - 1] @> k.conkey
            -- Nulls are looked for by nobody.
            AND coalesce(pg_get_expr(i.indpred, i.indrelid), '(a IS NOT NULL)')
              ~ '^\\(\\w+ IS NOT NULL\\)$'
        )
        """,
        personal,
    )
    for row in rows:
        if (row["child"], tuple(row["columns"])) not in FEW_ROWS:
            columns = ", ".join(row["columns"])
            yield f"{row['child']} -> {row['parent']}: no index begins with {columns}"


async def _erasures(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    """Tables that an erasure could not empty, or of which nobody could say that they are."""
    for table in await personal_tables(connection):
        if not await connection.fetchval(
            "SELECT bool_and(has_table_privilege($1, $2, p)) FROM unnest($3::text[]) AS p",
            *(roles.service, table, ["SELECT", "DELETE"]),
        ):
            yield f"{table}: an erasure cannot delete its rows"
        if not await connection.fetchval(
            "SELECT has_column_privilege($1, $2, 'user_id', 'SELECT')",
            *(roles.maintenance, table),
        ):
            yield f"{table}: nobody can count a person's rows"


async def _views(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    rows = await connection.fetch(
        """
        SELECT oid::regclass::text AS name, relkind::text, reloptions FROM pg_class
        WHERE relkind IN ('v', 'm') AND relnamespace::regnamespace::text = ANY($1)
        """,
        SCHEMAS,
    )
    for row in rows:
        if row["relkind"] == "m":
            yield f"{row['name']}: a materialised view holds everybody's rows"
        elif "security_invoker=true" not in (row["reloptions"] or ()):
            yield f"{row['name']}: a view without security_invoker"


async def _functions(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    rows = await connection.fetch(
        """
        SELECT p.oid::regprocedure::text AS name, p.pronamespace::regnamespace::text AS schema,
               p.prosecdef, p.proowner::regrole::text AS owner, x.privilege_type,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee
        FROM pg_proc p
        CROSS JOIN LATERAL aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) x
        WHERE p.pronamespace::regnamespace::text = ANY($1)
        """,
        SCHEMAS,
    )
    callers = {"dispatch": {roles.dispatch}, "tenant": set(_everyone(roles)), "public": set()}
    granted: dict[str, set[str]] = defaultdict(set)
    schemas: dict[str, str] = {}
    for row in rows:
        schemas[row["name"]] = row["schema"]
        if row["grantee"].strip('"') != OWNER_ROLE:
            granted[row["name"]].add(row["grantee"].strip('"'))
        if row["prosecdef"]:
            yield f"{row['name']}: a definer function"
        if row["owner"] != OWNER_ROLE:
            yield f"{row['name']}: owned by {row['owner']}"
    for name, schema in schemas.items():
        if granted[name] != callers[schema]:
            yield f"{name}: may be called by {sorted(granted[name])}"


def _everyone(roles: Roles) -> tuple[str, str, str]:
    return roles.service, roles.dispatch, roles.maintenance


async def _relation_grants(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    expected: set[Grant] = set()
    for table, role, access, _ in _declared_access(roles):
        for privilege, columns in access.grants.items():
            names = ("",) if columns == ALL else columns
            expected |= {(table, column, role, privilege) for column in names}
    rows = await connection.fetch(
        """
        SELECT o.name, o.col, x.privilege_type AS privilege, x.is_grantable,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee
        FROM (
          SELECT c.oid::regclass::text AS name, '' AS col, c.relacl AS acl, c.relowner AS owner
          FROM pg_class c WHERE c.relnamespace::regnamespace::text = ANY($1)
          UNION ALL
          SELECT c.oid::regclass::text, a.attname, a.attacl, c.relowner
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
          WHERE c.relnamespace::regnamespace::text = ANY($1)
        ) o CROSS JOIN LATERAL aclexplode(o.acl) x
        WHERE x.grantee <> o.owner
        """,
        SCHEMAS,
    )
    present = {(r["name"], r["col"], r["grantee"].strip('"'), r["privilege"]) for r in rows}
    for grant in expected - present:
        yield f"grant missing: {grant}"
    for grant in present - expected:
        yield f"grant too many: {grant}"
    for row in rows:
        if row["is_grantable"]:
            yield f"grant that can be passed on: {row['name']} to {row['grantee']}"


async def _schema_grants(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    rows = await connection.fetch(
        """
        SELECT n.nspname AS name, x.privilege_type AS privilege,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END AS grantee
        FROM pg_namespace n
        CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) x
        WHERE n.nspname = ANY($1)
        UNION ALL
        SELECT 'the database', x.privilege_type,
               CASE x.grantee WHEN 0 THEN 'PUBLIC' ELSE x.grantee::regrole::text END
        FROM pg_database d
        CROSS JOIN LATERAL aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) x
        WHERE d.datname = current_database()
        """,
        SCHEMAS,
    )
    ours = {"PUBLIC", *_everyone(roles)}
    present = {
        (r["name"], r["grantee"].strip('"'), r["privilege"])
        for r in rows
        if r["grantee"].strip('"') in ours
    }
    expected = {
        *((schema, role, "USAGE") for schema in ("public", "tenant") for role in _everyone(roles)),
        ("dispatch", roles.dispatch, "USAGE"),
        ("public", "PUBLIC", "USAGE"),
        ("the database", "PUBLIC", "CONNECT"),
    }
    for grant in present ^ expected:
        yield f"schema grant missing or too many: {grant}"


async def _owner(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    row = await connection.fetchrow("SELECT * FROM pg_roles WHERE rolname = $1", OWNER_ROLE)
    for may in ("rolsuper", "rolcanlogin", "rolbypassrls", "rolcreaterole", "rolcreatedb"):
        if row[may]:
            yield f"{OWNER_ROLE}: {may}"
    others = await connection.fetch(
        "SELECT nspname FROM pg_namespace WHERE nspname = ANY($1) AND nspowner <> $2::regrole",
        ("tenant", "dispatch"),
        OWNER_ROLE,
    )
    for other in others:
        yield f"schema {other['nspname']}: not the owner's"


async def _members(connection: asyncpg.Connection, roles: Roles) -> AsyncIterator[str]:
    rows = await connection.fetch(
        """
        SELECT r.rolname, r.rolsuper, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb,
               EXISTS (SELECT 1 FROM pg_auth_members m WHERE m.member = r.oid) AS member
        FROM pg_roles r WHERE r.rolname = ANY($1)
        """,
        _everyone(roles),
    )
    for row in rows:
        for may in ("rolsuper", "rolbypassrls", "rolcreaterole", "rolcreatedb", "member"):
            if row[may]:
                yield f"{row['rolname']}: {may}"
