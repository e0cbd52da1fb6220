-- Leaving: what an erasure deletes, it deletes through the tenant door, bound to the person, so that it
-- cannot touch a row of anybody else's. Locks: the user, then the rows of one table at a time.

-- Binds the user for their erasure, and for nothing else.
CREATE OR REPLACE FUNCTION tenant.begin_erasing(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR KEY SHARE;
  IF found_state IS DISTINCT FROM 'erasing' THEN
    RAISE EXCEPTION 'this user is not being erased' USING ERRCODE = 'ST003';
  END IF;
END $$;

-- Every table with a person's rows, with the columns of its key: those that others refer to last. Of
-- these `identities`, so that nobody is somebody new before nearly all of them is gone, and `users`
-- itself at the very end. Read from the catalogue: a table that comes later is not forgotten.
CREATE OR REPLACE FUNCTION tenant.personal_tables() RETURNS TABLE (name text, key text[])
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE personal AS (
    SELECT c.oid, c.relname::text AS name FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'user_id' AND NOT a.attisdropped
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
      AND NOT c.relispartition
  ),
  below AS (
    SELECT p.oid, p.name, 0 AS depth FROM personal p
    UNION
    SELECT child.oid, child.name, b.depth + 1
    FROM below b
    JOIN pg_constraint k ON k.contype = 'f' AND k.confrelid = b.oid AND k.conrelid <> b.oid
    JOIN personal child ON child.oid = k.conrelid
    WHERE b.depth < 100
  )
  SELECT b.name, (
    SELECT array_agg(a.attname::text ORDER BY n.nth)
    FROM pg_constraint k CROSS JOIN LATERAL unnest(k.conkey) WITH ORDINALITY AS n (attnum, nth)
    JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.attnum
    WHERE k.conrelid = b.oid AND k.contype = 'p'
  )
  FROM below b GROUP BY b.oid, b.name
  ORDER BY b.name = 'users', b.name = 'identities', max(b.depth) DESC, b.name
$$;

-- Deletes up to p_limit rows of a person from one table, those first whose keys come first, and after
-- p_after only. Says how many, and the last one's key. Whatever the planner thinks of a table that is
-- mostly one person's: each row is looked up by its key, and none that is not deleted is looked at.
CREATE OR REPLACE FUNCTION tenant.erase_batch(
  p_user uuid, p_table text, p_key text[], p_after text[], p_limit int,
  OUT deleted bigint, OUT last text[]
)
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
  columns text;
  texts text;
  same text;
  beyond text := '';
BEGIN
  SELECT string_agg(format('o.%I', k), ', '), string_agg(format('c.%I::text', k), ', '),
    string_agg(format('d.%1$I = c.%1$I', k), ' AND ')
  INTO columns, texts, same FROM unnest(p_key) AS k;
  IF cardinality(p_after) > 0 THEN
    -- Passed apart from the statement, which may come into the server's log: a key may be what a person wrote.
    SELECT format('AND (%s) > (%s)', columns, string_agg(
      format('$3[%s]::%s', k.nth, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY k.nth
    ))
    INTO beyond
    FROM unnest(p_key) WITH ORDINALITY AS k (name, nth)
    JOIN pg_attribute a
      ON a.attrelid = format('public.%I', p_table)::regclass AND a.attname = k.name;
  END IF;
  EXECUTE format(
    'WITH chosen AS MATERIALIZED ('
    '  SELECT %2$s FROM public.%1$I o WHERE o.user_id = $1 %3$s ORDER BY %2$s LIMIT $2'
    '), gone AS (DELETE FROM public.%1$I d USING chosen c WHERE d.user_id = $1 AND %4$s RETURNING 1)'
    ' SELECT (SELECT count(*) FROM gone), ('
    '  SELECT ARRAY[%5$s] FROM chosen c OFFSET greatest(0, (SELECT count(*) FROM chosen) - 1))',
    p_table, columns, beyond, same, texts
  ) INTO deleted, last USING p_user, p_limit, p_after;
END $$;

-- Deletes up to p_limit rows of a person who is being erased, of one table, children first, and says of
-- which and how many. No row once there is nothing but the row in `users`, or what still keeps another:
-- then nothing but trying again helps. Its own transaction. `after` is for the next call, so that it
-- does not pass by all that was deleted before; without it, it begins at the beginning.
CREATE OR REPLACE FUNCTION tenant.erase_rows(
  p_user uuid, p_limit int, p_after text[] DEFAULT NULL
) RETURNS TABLE (name text, deleted bigint, after text[])
LANGUAGE plpgsql AS $$
DECLARE
  each record;
  batch record;
BEGIN
  PERFORM tenant.begin_erasing(p_user);
  FOR each IN
    SELECT t.name, t.key, p_after[2:] AS beyond FROM tenant.personal_tables() t
    WHERE t.name = p_after[1]
    UNION ALL
    (SELECT t.name, t.key, NULL FROM tenant.personal_tables() t WHERE t.name <> 'users')
  LOOP
    BEGIN
      batch := tenant.erase_batch(p_user, each.name, each.key, each.beyond, p_limit);
    EXCEPTION WHEN foreign_key_violation THEN
      CONTINUE;  -- something was written below it just now
    END;
    IF batch.deleted > 0 THEN
      name := each.name;
      deleted := batch.deleted;
      after := ARRAY[each.name] || batch.last;
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
END $$;

-- The last row of all. False while something refers to it, which is to be deleted first; true also where
-- it was gone already.
CREATE OR REPLACE FUNCTION tenant.erase_user(p_user uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  DELETE FROM public.users u WHERE u.user_id = p_user AND u.state = 'erasing';
  RETURN NOT EXISTS (SELECT FROM public.users u WHERE u.user_id = p_user);
EXCEPTION WHEN foreign_key_violation THEN
  RETURN false;
END $$;

-- For the maintenance role: how many rows each table has of a person, zeros too.
CREATE OR REPLACE FUNCTION tenant.count_rows(p_user uuid) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE
  each record;
  found_rows bigint;
  counts jsonb := '{}';
BEGIN
  FOR each IN SELECT t.name FROM tenant.personal_tables() t LOOP
    EXECUTE format('SELECT count(*) FROM public.%I WHERE user_id = $1', each.name)
    INTO found_rows USING p_user;
    counts := counts || jsonb_build_object(each.name, found_rows);
  END LOOP;
  RETURN counts;
END $$;
