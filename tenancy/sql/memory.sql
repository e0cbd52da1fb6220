-- How much a person may keep in the store.

-- Bytes that a person keeps in the store, as they are stored.
CREATE OR REPLACE FUNCTION tenant.memory_bytes(p_user uuid) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    sum(pg_column_size(s.prefix) + pg_column_size(s.key) + pg_column_size(s.value)), 0
  )::bigint
  FROM public.store s WHERE s.user_id = p_user
$$;

-- Lets a person's writes that make the store grow happen one after the other, so that the sum at
-- the end of each is right. The caller has bound the user.
CREATE OR REPLACE FUNCTION tenant.begin_growth(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE
$$;

-- Refuses what was written where the person then keeps more than they may.
CREATE OR REPLACE FUNCTION tenant.require_memory(p_user uuid, p_defaults jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF tenant.memory_bytes(p_user)
    > (tenant.limits_of(p_user, p_defaults) ->> 'memory_bytes')::bigint
  THEN
    RAISE EXCEPTION 'the store is full' USING ERRCODE = 'ST008', DETAIL = 'memory_bytes';
  END IF;
END $$;
