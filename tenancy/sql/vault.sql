-- Data keys: wrapped, by user and version. All functions bind the user themselves.

-- Binds the user for what the service does by itself to what it keeps for them: also while they
-- are suspended, but not once they are being erased.
CREATE OR REPLACE FUNCTION tenant.begin_upkeep(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR KEY SHARE;
  IF found_state IS NULL OR found_state = 'erasing' THEN
    RAISE EXCEPTION 'this user cannot be written for' USING ERRCODE = 'ST003';
  END IF;
END $$;

-- The version of the data key that a value was sealed under, as its envelope says.
CREATE OR REPLACE FUNCTION tenant.sealed_under(p_sealed bytea) RETURNS int
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT get_byte(p_sealed, 1) << 24 | get_byte(p_sealed, 2) << 16
    | get_byte(p_sealed, 3) << 8 | get_byte(p_sealed, 4)
$$;

-- The newest first.
CREATE OR REPLACE FUNCTION tenant.read_data_keys(p_user uuid)
RETURNS TABLE (version int, wrapping_key text, wrapped bytea)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT k.version, k.wrapping_key, k.wrapped FROM public.data_keys k
    WHERE k.user_id = p_user ORDER BY k.version DESC;
END $$;

CREATE OR REPLACE FUNCTION tenant.data_key_age(p_user uuid) RETURNS float8
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN (
    SELECT extract(epoch FROM (SELECT clock_timestamp()) - max(k.created_at))::float8
    FROM public.data_keys k WHERE k.user_id = p_user
  );
END $$;

-- Two that make the same version at once get what the first of them stored: the newest key.
CREATE OR REPLACE FUNCTION tenant.add_data_key(
  p_user uuid, p_version int, p_wrapping_key text, p_wrapped bytea
) RETURNS TABLE (version int, wrapping_key text, wrapped bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_upkeep(p_user);
  INSERT INTO public.data_keys (user_id, version, wrapping_key, wrapped)
  VALUES (p_user, p_version, p_wrapping_key, p_wrapped)
  ON CONFLICT (user_id, version) DO NOTHING;
  RETURN QUERY
    SELECT k.version, k.wrapping_key, k.wrapped FROM public.data_keys k
    WHERE k.user_id = p_user ORDER BY k.version DESC LIMIT 1;
END $$;

-- Whoever stores a sealed value calls this first: the key that opens it must outlive it, so it is
-- not dropped before the caller's transaction ends. False where it is gone: seal again.
CREATE OR REPLACE FUNCTION tenant.hold_data_key(p_user uuid, p_sealed bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.data_keys k
  WHERE k.user_id = p_user AND k.version = tenant.sealed_under(p_sealed)
  FOR KEY SHARE;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tenant.rewrap_data_key(
  p_user uuid, p_version int, p_was bytea, p_wrapping_key text, p_wrapped bytea
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_upkeep(p_user);
  UPDATE public.data_keys k SET wrapping_key = p_wrapping_key, wrapped = p_wrapped
  WHERE k.user_id = p_user AND k.version = p_version AND k.wrapped = p_was;
  RETURN FOUND;
END $$;

-- Credentials that are sealed under older versions than the newest.
CREATE OR REPLACE FUNCTION tenant.read_older_credentials(p_user uuid)
RETURNS TABLE (connection_id uuid, credential_kind text, credential bytea)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT c.connection_id, c.credential_kind, c.credential FROM public.connections c
    WHERE c.user_id = p_user AND c.credential IS NOT NULL
      AND tenant.sealed_under(c.credential)
        < (SELECT max(k.version) FROM public.data_keys k WHERE k.user_id = p_user);
END $$;

-- The same credential under another data key, unless it was changed meanwhile.
CREATE OR REPLACE FUNCTION tenant.reseal_credential(
  p_user uuid, p_connection uuid, p_was bytea, p_sealed bytea
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_upkeep(p_user);
  IF NOT tenant.hold_data_key(p_user, p_sealed) THEN
    RETURN false;
  END IF;
  UPDATE public.connections c SET credential = p_sealed
  WHERE c.user_id = p_user AND c.connection_id = p_connection AND c.credential = p_was;
  RETURN FOUND;
END $$;

-- Deletes versions that nothing is sealed under, the newest never; returns how many older are left.
CREATE OR REPLACE FUNCTION tenant.drop_unused_data_keys(p_user uuid) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  newest int;
BEGIN
  PERFORM tenant.begin_upkeep(p_user);
  SELECT max(k.version) INTO newest FROM public.data_keys k WHERE k.user_id = p_user;
  -- Waits for those who hold one; what they stored, the next statement sees.
  PERFORM 1 FROM public.data_keys k
  WHERE k.user_id = p_user AND k.version < newest ORDER BY k.version FOR UPDATE;
  DELETE FROM public.data_keys k
  WHERE k.user_id = p_user AND k.version < newest
    AND NOT EXISTS (
      SELECT FROM public.connections c
      WHERE c.user_id = p_user AND tenant.sealed_under(c.credential) = k.version
    )
    AND NOT EXISTS (
      SELECT FROM public.authorizations a
      WHERE a.user_id = p_user AND tenant.sealed_under(a.sealed) = k.version
    );
  RETURN (
    SELECT count(*) FROM public.data_keys k WHERE k.user_id = p_user AND k.version < newest
  );
END $$;

-- The first step of an erasure: whatever a backup or a dump still has of the rest stays sealed.
CREATE OR REPLACE FUNCTION tenant.destroy_data_keys(p_user uuid) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  destroyed int;
BEGIN
  PERFORM tenant.begin_erasing(p_user);
  DELETE FROM public.data_keys k WHERE k.user_id = p_user;
  GET DIAGNOSTICS destroyed = ROW_COUNT;
  RETURN destroyed;
END $$;

-- For the maintenance role: under which key-encryption keys data keys are wrapped, and how many.
CREATE OR REPLACE FUNCTION tenant.vault_overview()
RETURNS TABLE (wrapping_key text, users bigint, data_keys bigint)
LANGUAGE sql STABLE AS $$
  SELECT k.wrapping_key, count(DISTINCT k.user_id), count(*)
  FROM public.data_keys k GROUP BY k.wrapping_key ORDER BY k.wrapping_key
$$;

-- For the maintenance role: users with data keys that are wrapped under another key than this one,
-- or whose newest is older than so many seconds (null: whatever its age), in the order of their ids.
CREATE OR REPLACE FUNCTION tenant.users_to_rekey(
  p_wrapping_key text, p_older_than float8, p_after uuid, p_limit int
) RETURNS TABLE (user_id uuid)
LANGUAGE sql STABLE AS $$
  SELECT k.user_id FROM public.data_keys k JOIN public.users u ON u.user_id = k.user_id
  WHERE k.user_id > p_after AND u.state <> 'erasing'
  GROUP BY k.user_id
  HAVING bool_or(k.wrapping_key <> p_wrapping_key) OR count(*) > 1
    OR max(k.created_at) < (SELECT clock_timestamp()) - make_interval(secs => p_older_than)
  ORDER BY k.user_id LIMIT p_limit
$$;
