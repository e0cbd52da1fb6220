-- The tenant door's functions. Applied anew by every `stoa migrate`, as the owner role.
-- All are SECURITY INVOKER: they see what the caller's policies let the caller see.

CREATE SCHEMA IF NOT EXISTS tenant;

CREATE OR REPLACE FUNCTION tenant.unbound(p_what text) RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
  RAISE EXCEPTION 'no % is bound to this transaction', p_what USING ERRCODE = 'ST002';
END $$;

-- The transaction's user. Raises when there is none: a session that lost its setting must
-- fail, not count zero rows. A setting used once reads '' afterwards, hence nullif.
-- Plain SQL, so that the planner inlines it into the policies.
CREATE OR REPLACE FUNCTION tenant.user_id() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(
    nullif(pg_catalog.current_setting('app.user_id', true), ''), tenant.unbound('user')
  )::pg_catalog.uuid
$$;

-- The verified (issuer, subject) that a sign-in transaction is about.
CREATE OR REPLACE FUNCTION tenant.identity() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(
    nullif(pg_catalog.current_setting('app.identity', true), ''), tenant.unbound('identity')
  )
$$;

-- The tombstones' hashes of the identity that a sign-in transaction is about, one per signing key.
CREATE OR REPLACE FUNCTION tenant.identity_hashes() RETURNS bytea[]
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT coalesce(nullif(current_setting('app.identity_hashes', true), ''), '{}')::bytea[]
$$;

-- Whether somebody signs in who was here before. In a policy, where a role that sees no tombstone
-- must find none.
CREATE OR REPLACE FUNCTION tenant.has_tombstone() RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM public.tombstones t
    WHERE t.identity_hash = ANY (tenant.identity_hashes())
      AND t.expires_at > (SELECT clock_timestamp())
  );
END $$;

-- Whether the transaction's user is being erased.
CREATE OR REPLACE FUNCTION tenant.is_erasing() RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM public.users u
    WHERE u.user_id = (SELECT tenant.user_id()) AND u.state = 'erasing'
  );
END $$;

-- Binds the user for reading, and for nothing else: writes have to hold the user's row.
CREATE OR REPLACE FUNCTION tenant.begin_read(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT set_config('app.user_id', p_user::text, true),
         set_config('transaction_read_only', 'on', true);
$$;

-- Binds the user and holds their row, so that an erasure waits for this transaction and
-- this transaction refuses once an erasure has begun: a lock, not a check.
CREATE OR REPLACE FUNCTION tenant.begin_write(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
BEGIN
  PERFORM set_config('app.user_id', p_user::text, true);
  SELECT state INTO found_state FROM public.users WHERE user_id = p_user FOR KEY SHARE;
  IF found_state IS DISTINCT FROM 'active' THEN
    RAISE EXCEPTION 'this user cannot be written for' USING ERRCODE = 'ST003';
  END IF;
END $$;

-- The guard of every write that a worker makes for a run, and of the thread it writes to. FOR SHARE makes a takeover wait
-- for this transaction's commit; a plain SELECT would not.
CREATE OR REPLACE FUNCTION tenant.hold_fence(
  p_run uuid, p_fence bigint, p_thread uuid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = (SELECT tenant.user_id()) AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND (p_thread IS NULL OR r.thread_id = p_thread)
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR SHARE OF r;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
END $$;

-- Finds the user of a verified identity, or makes the candidate that user. Two first requests
-- at once agree on one: the loser's insert fails on the unique identity and it reads again.
-- `p_identity_hashes`: what tombstones know the identity by. Whoever was here before is somebody new,
-- with what is left of their budget, their limits, and suspended if they were.
CREATE OR REPLACE FUNCTION tenant.sign_in(
  p_candidate uuid, p_identity text, p_name text, p_email text, p_identity_hashes bytea[] DEFAULT '{}'
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_user uuid;
BEGIN
  PERFORM set_config('app.identity', p_identity, true);
  SELECT user_id INTO found_user FROM public.identities WHERE identity = p_identity;
  IF found_user IS NULL THEN
    PERFORM set_config('app.user_id', p_candidate::text, true),
            set_config('app.identity_hashes', p_identity_hashes::text, true);
    BEGIN
      PERFORM tenant.make_user(p_candidate, p_identity, p_name, p_email);
      RETURN p_candidate;
    EXCEPTION WHEN unique_violation THEN
      SELECT user_id INTO STRICT found_user FROM public.identities WHERE identity = p_identity;
    END;
  END IF;
  PERFORM set_config('app.user_id', found_user::text, true);
  UPDATE public.users SET name = p_name, email = p_email
  WHERE user_id = found_user AND state = 'active'
    AND (name, email) IS DISTINCT FROM (p_name, p_email);
  RETURN found_user;
END $$;

-- Who a verified identity belongs to, without making anybody. Where that is nobody (any more): the newest
-- erasure of somebody of that identity, for as long as its tombstone stands.
CREATE OR REPLACE FUNCTION tenant.find_user(
  p_identity text, p_identity_hashes bytea[], OUT user_id uuid, OUT erasure_id uuid
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('app.identity', p_identity, true),
          set_config('app.identity_hashes', p_identity_hashes::text, true);
  SELECT i.user_id INTO find_user.user_id FROM public.identities i WHERE i.identity = p_identity;
  IF NOT FOUND THEN
    SELECT t.erasure_id INTO find_user.erasure_id FROM public.tombstones t
    WHERE t.identity_hash = ANY (tenant.identity_hashes())
      AND t.expires_at > (SELECT clock_timestamp())
    ORDER BY t.created_at DESC LIMIT 1;
  END IF;
END $$;

-- Refuses to make a user of somebody who has left ten times within a day: each time leaves a tombstone
-- for months, in the database and beside it. Nobody is refused to leave. The caller has bound the hashes.
CREATE OR REPLACE FUNCTION tenant.admit_return() RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  earlier timestamptz;
BEGIN
  SELECT t.created_at INTO earlier FROM public.tombstones t
  WHERE t.identity_hash = ANY (tenant.identity_hashes())
    AND t.created_at > (SELECT clock_timestamp()) - interval '24 hours'
  ORDER BY t.created_at DESC OFFSET 9 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'somebody leaves and comes back all the time' USING ERRCODE = 'ST008',
      DETAIL = 'returns_per_day',
      HINT = ceil(extract(epoch FROM earlier + interval '24 hours' - clock_timestamp()))::text;
  END IF;
END $$;

-- Makes a user, who begins where the newest tombstone of their identity says that somebody left. What
-- was spent is of the first hour of the day, and of the month before it. The caller has bound the user,
-- the identity and its hashes.
CREATE OR REPLACE FUNCTION tenant.make_user(
  p_user uuid, p_identity text, p_name text, p_email text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  today timestamptz := date_trunc('day', clock_timestamp(), 'UTC');
  on_day date := (today AT TIME ZONE 'UTC')::date;
  earlier public.tombstones;
BEGIN
  PERFORM tenant.admit_return();
  SELECT * INTO earlier FROM public.tombstones t
  WHERE t.identity_hash = ANY (tenant.identity_hashes())
    AND t.expires_at > (SELECT clock_timestamp())
  ORDER BY t.created_at DESC LIMIT 1;
  INSERT INTO public.users (user_id, name, email, state, state_at)
  VALUES (
    p_user, p_name, p_email,
    CASE WHEN earlier.was_suspended THEN 'suspended' ELSE 'active' END::public.user_state,
    CASE WHEN earlier.was_suspended THEN clock_timestamp() END
  );
  INSERT INTO public.identities (user_id, identity) VALUES (p_user, p_identity);
  IF earlier.plan IS NOT NULL OR earlier.limits <> '{}' THEN
    INSERT INTO public.user_limits (user_id, plan, limits)
    VALUES (
      p_user, (SELECT p.plan FROM public.plans p WHERE p.plan = earlier.plan), earlier.limits
    );
  END IF;
  INSERT INTO public.usage_hours (user_id, hour, model, prompt_tokens)
  SELECT p_user, s.hour, '', sum(s.tokens) FROM (
    SELECT part.tokens,
      date_trunc(CASE WHEN part.day = on_day THEN 'day' ELSE 'month' END, today, 'UTC') AS hour
    FROM (VALUES
      (earlier.day, earlier.tokens_in_day),
      (earlier.day - 1, earlier.tokens_in_month_before)
    ) AS part (day, tokens)
    WHERE part.tokens > 0
      AND date_trunc('month', part.day::timestamp) = date_trunc('month', on_day::timestamp)
  ) AS s
  GROUP BY s.hour;
END $$;
