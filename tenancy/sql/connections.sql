-- A person's links to MCP servers. All functions bind the user themselves, and see only theirs.
-- A server of the operator's has no row before there is something to say of it: it counts as one of
-- version 1 that is enabled.

CREATE OR REPLACE FUNCTION tenant.read_connections(p_user uuid, p_server text)
RETURNS SETOF public.connections
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT c.* FROM public.connections c
    WHERE c.user_id = p_user AND (p_server IS NULL OR c.server = p_server)
    ORDER BY c.server;
END $$;

CREATE OR REPLACE FUNCTION tenant.read_connection(p_user uuid, p_connection uuid)
RETURNS SETOF public.connections
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT c.* FROM public.connections c
    WHERE c.user_id = p_user AND c.connection_id = p_connection;
END $$;

-- A credential, still sealed, with the data key that opens it: one round trip before a call.
CREATE OR REPLACE FUNCTION tenant.read_credential(p_user uuid, p_server text)
RETURNS TABLE (
  connection_id uuid, version bigint, url text, enabled boolean,
  credential_kind text, credential bytea, expires_in float8,
  key_version int, wrapping_key text, wrapped bytea
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN QUERY
    SELECT c.connection_id, c.version, c.url, c.enabled, c.credential_kind, c.credential,
      extract(epoch FROM c.expires_at - (SELECT clock_timestamp()))::float8,
      k.version, k.wrapping_key, k.wrapped
    FROM public.connections c
    LEFT JOIN public.data_keys k
      ON k.user_id = c.user_id AND k.version = tenant.sealed_under(c.credential)
    WHERE c.user_id = p_user AND c.server = p_server;
END $$;

-- Adds a server of the person's own: 'added', 'exists', or 'too_many'. Its versions begin beyond
-- those of one of the same name that was removed, so that nothing of that one passes for it: no
-- credential, and no approval.
CREATE OR REPLACE FUNCTION tenant.add_connection(
  p_user uuid, p_server text, p_url text, p_auth text, p_header text, p_most int
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  beyond bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE;
  IF (SELECT count(*) FROM public.connections c WHERE c.user_id = p_user AND c.url IS NOT NULL)
    >= p_most
  THEN
    RETURN 'too_many';
  END IF;
  INSERT INTO public.connections (
    user_id, server, url, auth, header, version, grant_version, approval_version, check_wanted_at
  )
  VALUES (
    p_user, p_server, p_url, p_auth, p_header, beyond, beyond, beyond,
    CASE WHEN p_auth = 'none' THEN clock_timestamp() END
  )
  ON CONFLICT (user_id, server) DO NOTHING;
  RETURN CASE WHEN FOUND THEN 'added' ELSE 'exists' END;
END $$;

-- The row of a server, held until the transaction ends; one of the operator's is made if there is
-- none. Nothing where it is not of the kind that the caller takes it for. The user is bound. Held
-- whole, since the row may be deleted: a weaker lock would have to grow past whoever shares it.
CREATE OR REPLACE FUNCTION tenant.hold_connection(p_user uuid, p_server text, p_own boolean)
RETURNS SETOF public.connections
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT p_own THEN
    INSERT INTO public.connections (user_id, server) VALUES (p_user, p_server)
    ON CONFLICT (user_id, server) DO NOTHING;
  END IF;
  RETURN QUERY
    SELECT c.* FROM public.connections c
    WHERE c.user_id = p_user AND c.server = p_server AND (c.url IS NOT NULL) = p_own
    FOR UPDATE;
END $$;

-- The id under which a server's connection is stored, from now on.
CREATE OR REPLACE FUNCTION tenant.store_connection(p_user uuid, p_server text, p_own boolean)
RETURNS uuid
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  RETURN (SELECT h.connection_id FROM tenant.hold_connection(p_user, p_server, p_own) h);
END $$;

-- What the person says of when they want to be asked before a server's tools are called, instead of
-- what they said before, at most twenty times in an hour. Returns the connection; null where there is
-- no server of that kind.
CREATE OR REPLACE FUNCTION tenant.say_approval(
  p_user uuid, p_server text, p_own boolean, p_rules jsonb
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  held public.connections;
  earlier timestamptz;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT * INTO held FROM tenant.hold_connection(p_user, p_server, p_own);
  IF held.connection_id IS NOT NULL AND held.approval <> p_rules THEN
    -- Each is on record for long, so nobody changes them all the time.
    SELECT a.at INTO earlier FROM public.audit a
    WHERE a.reference = tenant.own_reference() AND a.action = 'rules_changed'
      AND a.at > clock_timestamp() - interval '1 hour'
    ORDER BY a.at DESC OFFSET 19 LIMIT 1;
    IF FOUND THEN
      RAISE EXCEPTION 'the rules change all the time' USING ERRCODE = 'ST008',
        DETAIL = 'rule_changes_per_hour',
        HINT = ceil(extract(epoch FROM earlier + interval '1 hour' - clock_timestamp()))::text;
    END IF;
    UPDATE public.connections c SET
      approval = p_rules, approval_version = c.approval_version + 1, updated_at = clock_timestamp()
    WHERE c.user_id = p_user AND c.connection_id = held.connection_id;
    PERFORM tenant.audit(
      p_user, 'person', 'rules_changed', NULL, NULL, NULL, p_server, NULL, p_own,
      p_reason => p_rules::text
    );
  END IF;
  RETURN held.connection_id;
END $$;

-- Lets a server be used, and has a worker look at it; with p_anew by a new connection.
CREATE OR REPLACE FUNCTION tenant.want_check(
  p_user uuid, p_server text, p_own boolean, p_anew boolean
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  held public.connections;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT * INTO held FROM tenant.hold_connection(p_user, p_server, p_own);
  UPDATE public.connections c SET
    enabled = true,
    version = c.version + (p_anew OR NOT c.enabled)::int,
    check_wanted_at = clock_timestamp(), updated_at = clock_timestamp()
  WHERE c.user_id = p_user AND c.connection_id = held.connection_id;
  RETURN held.connection_id;
END $$;

-- Takes a credential away, and with it whatever was known by it: 'forget' leaves the server in use,
-- 'disconnect' does not, 'remove' leaves nothing. Returns what was there, with the data key that
-- opens it, so that it can be revoked where it was issued; no row where there is no such server.
CREATE OR REPLACE FUNCTION tenant.drop_credential(
  p_user uuid, p_server text, p_own boolean, p_how text
) RETURNS TABLE (
  connection_id uuid, credential_kind text, credential bytea,
  key_version int, wrapping_key text, wrapped bytea
)
LANGUAGE plpgsql AS $$
DECLARE
  held public.connections;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT * INTO held FROM tenant.hold_connection(p_user, p_server, p_own);
  IF held.connection_id IS NULL THEN
    RETURN;
  END IF;
  -- One that is under way would connect again.
  PERFORM tenant.drop_authorizations(p_server);
  IF p_how = 'remove' THEN
    DELETE FROM public.connections c
    WHERE c.user_id = p_user AND c.connection_id = held.connection_id;
  ELSE
    UPDATE public.connections c SET
      enabled = c.enabled AND p_how <> 'disconnect',
      version = c.version + 1, grant_version = c.grant_version + 1,
      credential = NULL, credential_kind = NULL, expires_at = NULL, refreshing_until = NULL,
      state = 'unknown', reason = NULL,
      listing = NULL, listing_version = NULL, listed_for = NULL, listed_at = NULL,
      readable = NULL,
      check_wanted_at = NULL, updated_at = clock_timestamp()
    WHERE c.user_id = p_user AND c.connection_id = held.connection_id;
  END IF;
  RETURN QUERY
    SELECT held.connection_id, held.credential_kind, held.credential,
      k.version, k.wrapping_key, k.wrapped
    FROM (SELECT) AS one
    LEFT JOIN public.data_keys k
      ON k.user_id = p_user AND k.version = tenant.sealed_under(held.credential);
END $$;

-- Keeps a credential: 'kept', 'changed' where the connection is at another version than expected or
-- is gone, 'reseal' where the data key is gone that it was sealed under. One that a person gave is
-- looked at by a worker and puts the server into use; one that was refreshed is the same one to
-- whoever listed with it, and to approvals.
CREATE OR REPLACE FUNCTION tenant.keep_credential(
  p_user uuid, p_connection uuid, p_kind text, p_sealed bytea, p_expires_in float8,
  p_expected bigint, p_refreshed boolean
) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  IF NOT tenant.hold_data_key(p_user, p_sealed) THEN
    RETURN 'reseal';
  END IF;
  UPDATE public.connections c SET
    credential = p_sealed, credential_kind = p_kind,
    expires_at = clock_timestamp() + make_interval(secs => p_expires_in),
    refreshing_until = NULL,
    version = c.version + 1,
    grant_version = c.grant_version + (NOT p_refreshed)::int,
    enabled = c.enabled OR NOT p_refreshed,
    state = CASE WHEN p_refreshed THEN c.state ELSE 'unknown' END,
    reason = CASE WHEN p_refreshed THEN c.reason END,
    listed_for = CASE
      WHEN p_refreshed AND c.listed_for = c.version THEN c.version + 1 ELSE c.listed_for
    END,
    check_wanted_at = CASE WHEN p_refreshed THEN c.check_wanted_at ELSE clock_timestamp() END,
    updated_at = clock_timestamp()
  WHERE c.user_id = p_user AND c.connection_id = p_connection
    AND (p_expected IS NULL OR c.version = p_expected)
    AND (c.enabled OR NOT p_refreshed);
  RETURN CASE WHEN FOUND THEN 'kept' ELSE 'changed' END;
END $$;

-- The right to refresh a credential, for a while: 'yours', 'others' while somebody else has it, or
-- 'changed' where it is another one by now.
CREATE OR REPLACE FUNCTION tenant.begin_refresh(
  p_user uuid, p_connection uuid, p_version bigint, p_seconds float8
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  is_there boolean;
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.connections c
  SET refreshing_until = clock_timestamp() + make_interval(secs => p_seconds)
  WHERE c.user_id = p_user AND c.connection_id = p_connection AND c.version = p_version
    AND c.enabled AND c.credential_kind = 'oauth'
    AND (c.refreshing_until IS NULL OR c.refreshing_until < (SELECT clock_timestamp()));
  IF FOUND THEN
    RETURN 'yours';
  END IF;
  SELECT true INTO is_there FROM public.connections c
  WHERE c.user_id = p_user AND c.connection_id = p_connection AND c.version = p_version
    AND c.enabled AND c.credential_kind = 'oauth';
  RETURN CASE WHEN is_there THEN 'others' ELSE 'changed' END;
END $$;

-- Gives that right back without a new credential; with p_lost the old one is of no use any more.
-- False where the connection has changed meanwhile.
CREATE OR REPLACE FUNCTION tenant.end_refresh(
  p_user uuid, p_connection uuid, p_version bigint, p_lost boolean
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.connections c SET
    refreshing_until = NULL,
    version = c.version + p_lost::int,
    credential = CASE WHEN NOT p_lost THEN c.credential END,
    credential_kind = CASE WHEN NOT p_lost THEN c.credential_kind END,
    expires_at = CASE WHEN NOT p_lost THEN c.expires_at END,
    state = CASE WHEN p_lost THEN 'needs_authorization' ELSE c.state END,
    reason = CASE WHEN NOT p_lost THEN c.reason END,
    updated_at = clock_timestamp()
  WHERE c.user_id = p_user AND c.connection_id = p_connection AND c.version = p_version;
  RETURN FOUND;
END $$;

-- How a server stood when it was last spoken to under p_version, and the tools that it listed, if it
-- did; with them the parts of what it lets be read that it has said. Returns the connection where a
-- person would see a difference; writes only then.
CREATE OR REPLACE FUNCTION tenant.store_listing(
  p_user uuid, p_server text, p_own boolean, p_version bigint, p_state text, p_reason text,
  p_listing jsonb, p_listing_version text, p_readable jsonb
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  held public.connections;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT * INTO held FROM tenant.hold_connection(p_user, p_server, p_own);
  RETURN tenant.note_standing(
    held, p_version, p_state, p_reason, p_listing, p_listing_version, p_readable
  );
END $$;

CREATE OR REPLACE FUNCTION tenant.note_standing(
  p_held public.connections, p_version bigint, p_state text, p_reason text,
  p_listing jsonb, p_listing_version text, p_readable jsonb
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  noted uuid;
  -- A part that it did not say this time is what it was, of the same server and credential.
  new_readable jsonb := CASE
    WHEN (p_held.listing_version, p_held.listed_for)
      IS NOT DISTINCT FROM (p_listing_version, p_version)
      THEN coalesce(p_held.readable, '{}') || coalesce(p_readable, '{}')
    ELSE p_readable
  END;
BEGIN
  UPDATE public.connections c SET
    state = p_state, reason = p_reason,
    listing = coalesce(p_listing, c.listing),
    readable = CASE WHEN p_listing IS NULL THEN c.readable ELSE new_readable END,
    listing_version = CASE WHEN p_listing IS NULL THEN c.listing_version ELSE p_listing_version END,
    listed_for = CASE WHEN p_listing IS NULL THEN c.listed_for ELSE p_version END,
    listed_at = CASE WHEN p_listing IS NULL THEN c.listed_at ELSE clock_timestamp() END,
    updated_at = clock_timestamp()
  WHERE c.user_id = p_held.user_id AND c.connection_id = p_held.connection_id
    AND c.version = p_version AND c.enabled
    AND (
      (c.state, c.reason) IS DISTINCT FROM (p_state, p_reason)
      OR p_listing IS NOT NULL AND (c.listing, c.listing_version, c.listed_for, c.readable)
        IS DISTINCT FROM (p_listing, p_listing_version, p_version, new_readable)
    )
  RETURNING c.connection_id INTO noted;
  RETURN noted;
END $$;

-- What a check that a worker was asked for has found, under p_version. A wish that came meanwhile
-- stays; so does this one where the connection has changed since.
CREATE OR REPLACE FUNCTION tenant.finish_check(
  p_user uuid, p_connection uuid, p_wanted_at timestamptz, p_version bigint,
  p_state text, p_reason text, p_listing jsonb, p_listing_version text, p_readable jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  held public.connections;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT * INTO held FROM public.connections c
  WHERE c.user_id = p_user AND c.connection_id = p_connection FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM tenant.note_standing(
    held, p_version, p_state, p_reason, p_listing, p_listing_version, p_readable
  );
  UPDATE public.connections c SET
    checking_until = NULL,
    check_wanted_at = CASE
      WHEN c.check_wanted_at = p_wanted_at AND c.version = p_version THEN NULL
      ELSE c.check_wanted_at
    END,
    updated_at = clock_timestamp()
  WHERE c.user_id = p_user AND c.connection_id = p_connection;
  RETURN true;
END $$;

-- For the dispatch role: takes wanted checks on for a while, oldest first, of active users, of each
-- so many at a time. Those of a worker that died in it come again when the while is over.
CREATE OR REPLACE FUNCTION dispatch.claim_checks(p_limit int, p_of_each int, p_seconds float8)
RETURNS TABLE (user_id uuid, connection_id uuid)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  -- Chosen by itself: a plan that looked twice would lock others the second time.
  RETURN QUERY
    WITH chosen AS MATERIALIZED (
      SELECT w.user_id, w.connection_id FROM public.connections w
      JOIN public.users u ON u.user_id = w.user_id
      WHERE w.check_wanted_at IS NOT NULL AND u.state = 'active'
        AND (w.checking_until IS NULL OR w.checking_until < (SELECT clock_timestamp()))
        AND p_of_each > (
          SELECT count(*) FROM public.connections o
          WHERE o.user_id = w.user_id AND o.connection_id <> w.connection_id
            AND (
              o.checking_until > (SELECT clock_timestamp())
              OR (o.check_wanted_at, o.connection_id) < (w.check_wanted_at, w.connection_id)
            )
        )
      ORDER BY w.check_wanted_at LIMIT p_limit
      FOR UPDATE OF w SKIP LOCKED
    )
    UPDATE public.connections c
    SET checking_until = clock_timestamp() + make_interval(secs => p_seconds)
    FROM chosen h
    WHERE c.user_id = h.user_id AND c.connection_id = h.connection_id
    RETURNING c.user_id, c.connection_id;
END $$;

-- What is told of how a link stands has a number that grows. Since when it does not work, and why, is
-- fixed at the first failure, and over when it works, or when it is known to wait for its person; a new
-- credential that nobody has tried yet changes nothing of it.
CREATE OR REPLACE FUNCTION tenant.connection_stands() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW.failing_since := CASE
    WHEN NEW.enabled AND NEW.state = 'unavailable'
      THEN coalesce(OLD.failing_since, clock_timestamp())
    WHEN NEW.enabled AND NEW.state = 'unknown' THEN OLD.failing_since
  END;
  NEW.failing_reason := CASE
    WHEN NEW.failing_since IS NOT NULL THEN coalesce(OLD.failing_reason, NEW.reason)
  END;
  NEW.standing_version := OLD.standing_version + (
    (NEW.failing_since IS NULL, NEW.enabled AND NEW.state = 'available')
    IS DISTINCT FROM (OLD.failing_since IS NULL, OLD.enabled AND OLD.state = 'available')
  )::int;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER connection_stands BEFORE UPDATE OF state, reason, enabled
ON public.connections FOR EACH ROW
WHEN ((NEW.state, NEW.reason, NEW.enabled) IS DISTINCT FROM (OLD.state, OLD.reason, OLD.enabled))
EXECUTE FUNCTION tenant.connection_stands();
