-- OAuth authorizations under way. A row is found by the hash of its state and by its user, and is
-- taken once.

-- Puts one under way for p_seconds, beside at most p_most - 1 others of the user's. Says 'kept';
-- 'unknown' where it is for a server of the user's own that they have no more (one of the operator's
-- needs no row yet); 'stale' where the key that it is sealed under is gone: seal again.
CREATE OR REPLACE FUNCTION tenant.begin_authorization(
  p_user uuid, p_server text, p_is_own boolean, p_state_hash bytea, p_sealed bytea,
  p_seconds float8, p_most int
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  IF NOT tenant.hold_data_key(p_user, p_sealed) THEN
    RETURN 'stale';
  END IF;
  IF NOT p_is_own THEN
    INSERT INTO public.connections (user_id, server) VALUES (p_user, p_server)
    ON CONFLICT DO NOTHING;
  END IF;
  PERFORM 1 FROM public.connections c
  WHERE c.user_id = p_user AND c.server = p_server AND (c.url IS NOT NULL) = p_is_own
  FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN 'unknown';
  END IF;
  DELETE FROM public.authorizations a
  WHERE a.user_id = p_user AND (
    a.expires_at <= (SELECT clock_timestamp())
    OR a.state_hash IN (
      SELECT o.state_hash FROM public.authorizations o WHERE o.user_id = p_user
      ORDER BY o.created_at DESC OFFSET p_most - 1
    )
  );
  INSERT INTO public.authorizations (user_id, state_hash, server, sealed, expires_at)
  VALUES (p_user, p_state_hash, p_server, p_sealed,
          clock_timestamp() + make_interval(secs => p_seconds));
  RETURN 'kept';
END $$;

-- Takes one that is the user's and not too old. With it comes its connection's version: what comes
-- of it may be kept only while that stands.
CREATE OR REPLACE FUNCTION tenant.take_authorization(p_user uuid, p_state_hash bytea)
RETURNS TABLE (sealed bytea, version bigint)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  RETURN QUERY
  DELETE FROM public.authorizations a USING public.connections c
  WHERE a.user_id = p_user AND a.state_hash = p_state_hash
    AND a.expires_at > (SELECT clock_timestamp())
    AND c.user_id = a.user_id AND c.server = a.server
  RETURNING a.sealed, c.version;
END $$;

-- Drops up to p_limit of the user's whose time is over; done once none are left.
CREATE OR REPLACE FUNCTION tenant.drop_expired_authorizations(
  p_user uuid, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.authorizations a
  WHERE a.user_id = p_user AND a.state_hash IN (
    SELECT o.state_hash FROM public.authorizations o
    WHERE o.user_id = p_user AND o.expires_at <= (SELECT clock_timestamp())
    ORDER BY o.state_hash LIMIT p_limit
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  done := dropped < p_limit;
END $$;

-- Drops what is under way for a server, so that it does not connect again. The caller has bound the
-- user.
CREATE OR REPLACE FUNCTION tenant.drop_authorizations(p_server text) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM public.authorizations a
  WHERE a.user_id = (SELECT tenant.user_id()) AND a.server = p_server
$$;
