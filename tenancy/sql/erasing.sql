-- Leaving. An erasure is begun, led and looked at through the cross-user door; what it deletes it deletes
-- through the tenant door, bound to the person, so that it cannot touch a row of anybody else's.
-- Locks: the user whole (an erasure begins and ends), then as everywhere.

-- Begins to erase a person, or returns the erasure that was begun. From here on nothing is written for
-- them: the row is held against every writer's FOR KEY SHARE. Null where there is no such person.
CREATE OR REPLACE FUNCTION dispatch.begin_erasure(
  p_user uuid, p_requested_by text, p_erasure uuid DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
  begun uuid;
BEGIN
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  SELECT e.erasure_id INTO begun FROM public.erasures e WHERE e.subject = p_user;
  IF begun IS NOT NULL THEN
    RETURN begun;
  END IF;
  INSERT INTO public.erasures AS e (erasure_id, subject, requested_by, was_suspended)
  VALUES (
    coalesce(p_erasure, gen_random_uuid()), p_user, p_requested_by, found_state = 'suspended'
  )
  RETURNING e.erasure_id INTO STRICT begun;
  UPDATE public.users u SET state = 'erasing', state_at = clock_timestamp()
  WHERE u.user_id = p_user;
  RETURN begun;
END $$;

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

-- Every table with a person's rows, those that others refer to last, `users` itself at the very end.
-- Read from the catalogue: a table that comes later is not forgotten.
CREATE OR REPLACE FUNCTION tenant.personal_tables() RETURNS TABLE (name text, depth int)
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
  SELECT b.name, max(b.depth) FROM below b GROUP BY b.name
  ORDER BY b.name = 'users', max(b.depth) DESC, b.name
$$;

-- Deletes up to p_limit rows of a person who is being erased, children first, and says of which table
-- and how many; no row once there is nothing but the row in `users`. Its own transaction.
CREATE OR REPLACE FUNCTION tenant.erase_rows(p_user uuid, p_limit int)
RETURNS TABLE (name text, deleted bigint)
LANGUAGE plpgsql AS $$
DECLARE
  each record;
BEGIN
  PERFORM tenant.begin_erasing(p_user);
  FOR each IN SELECT t.name FROM tenant.personal_tables() t WHERE t.name <> 'users' LOOP
    EXECUTE format(
      'DELETE FROM public.%1$I WHERE user_id = $1 AND ctid = ANY (ARRAY('
      'SELECT o.ctid FROM public.%1$I o WHERE o.user_id = $1 LIMIT $2))', each.name
    ) USING p_user, p_limit;
    GET DIAGNOSTICS deleted = ROW_COUNT;
    IF deleted > 0 THEN
      name := each.name;
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
END $$;

-- The last row of all. Whatever still referred to it would keep it. False where it is gone already.
CREATE OR REPLACE FUNCTION tenant.erase_user(p_user uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  DELETE FROM public.users u WHERE u.user_id = p_user AND u.state = 'erasing';
  RETURN FOUND;
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
