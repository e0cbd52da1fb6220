-- The tenant door's functions. Applied anew by every `stoa migrate`, as the owner role.
-- All are SECURITY INVOKER: they see what the caller's policies let the caller see.

CREATE SCHEMA IF NOT EXISTS tenant;

-- The transaction's user. Raises when there is none: a session that lost its setting must
-- fail, not count zero rows. A setting used once reads '' afterwards, hence nullif.
CREATE OR REPLACE FUNCTION tenant.user_id() RETURNS uuid
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
  bound text := nullif(current_setting('app.user_id', true), '');
BEGIN
  IF bound IS NULL THEN
    RAISE EXCEPTION 'no user is bound to this transaction' USING ERRCODE = 'ST002';
  END IF;
  RETURN bound::uuid;
END $$;

-- The verified (issuer, subject) that a sign-in transaction is about.
CREATE OR REPLACE FUNCTION tenant.identity() RETURNS text
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog AS $$
DECLARE
  bound text := nullif(current_setting('app.identity', true), '');
BEGIN
  IF bound IS NULL THEN
    RAISE EXCEPTION 'no identity is bound to this transaction' USING ERRCODE = 'ST002';
  END IF;
  RETURN bound;
END $$;

CREATE OR REPLACE FUNCTION tenant.begin_read(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  SELECT set_config('app.user_id', p_user::text, true);
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

-- The guard of every write that a worker makes for a run. FOR SHARE makes a takeover wait
-- for this transaction's commit; a plain SELECT would not.
CREATE OR REPLACE FUNCTION tenant.hold_fence(p_run uuid, p_fence bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = (SELECT tenant.user_id()) AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR SHARE OF r;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
END $$;

-- Appends one flush of events: bind, guard and insert in one round trip.
CREATE OR REPLACE FUNCTION tenant.append_events(
  p_user uuid, p_run uuid, p_fence bigint, p_first_seq int, p_events text[], p_data bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  SELECT p_user, p_run, p_first_seq + e.n - 1, e.event, e.data
  FROM unnest(p_events, p_data) WITH ORDINALITY AS e (event, data, n)
  -- The same owner's retry after a commit whose answer was lost.
  ON CONFLICT (user_id, run_id, seq) DO NOTHING;
END $$;

-- What a claimed run needs to be executed; the next event's seq comes with it.
CREATE OR REPLACE FUNCTION tenant.load_run(
  p_user uuid, p_run uuid, p_fence bigint,
  OUT thread_id uuid, OUT graph_id text, OUT request jsonb, OUT metadata jsonb,
  OUT attempt int, OUT next_seq int
)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  SELECT r.thread_id, r.graph_id, r.request, r.metadata, r.attempt
  INTO thread_id, graph_id, request, metadata, attempt
  FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run;
  SELECT coalesce(max(e.seq), 0) + 1 INTO next_seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
END $$;

-- Ends a run: the last events and the outcome commit together, so nobody can read `end`
-- before both. The row is locked for update first (share-then-update would deadlock).
CREATE OR REPLACE FUNCTION tenant.settle_run(
  p_user uuid, p_run uuid, p_fence bigint, p_state public.run_state,
  p_error_code text, p_error_message text,
  p_first_seq int, p_events text[], p_data bytea[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  UPDATE public.runs r
  SET state = p_state, error_code = p_error_code, error_message = p_error_message,
      worker_id = NULL, ended_at = clock_timestamp(), updated_at = clock_timestamp()
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    );
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  SELECT p_user, p_run, p_first_seq + e.n - 1, e.event, e.data
  FROM unnest(p_events, p_data) WITH ORDINALITY AS e (event, data, n);
END $$;

-- Finds the user of a verified identity, or makes the candidate that user. Two first requests
-- at once agree on one: the loser's insert fails on the unique identity and it reads again.
CREATE OR REPLACE FUNCTION tenant.sign_in(
  p_identity text, p_candidate uuid, p_name text, p_email text
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_user uuid;
BEGIN
  PERFORM set_config('app.identity', p_identity, true);
  SELECT user_id INTO found_user FROM public.identities WHERE identity = p_identity;
  IF found_user IS NULL THEN
    PERFORM set_config('app.user_id', p_candidate::text, true);
    BEGIN
      INSERT INTO public.users (user_id, name, email) VALUES (p_candidate, p_name, p_email);
      INSERT INTO public.identities (user_id, identity) VALUES (p_candidate, p_identity);
      RETURN p_candidate;
    EXCEPTION WHEN unique_violation THEN
      SELECT user_id INTO STRICT found_user FROM public.identities WHERE identity = p_identity;
    END;
  END IF;
  PERFORM set_config('app.user_id', found_user::text, true);
  UPDATE public.users SET name = p_name, email = p_email
  WHERE user_id = found_user AND (name, email) IS DISTINCT FROM (p_name, p_email);
  RETURN found_user;
END $$;
