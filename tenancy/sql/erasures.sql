-- Erasures as durable jobs, for the dispatch role: begun, led step by step, looked at. Whoever works on
-- one has claimed it for a while; `attempts` is the fence without which nothing more is said of it.
-- Locks: the user, the erasure, then as everywhere.

-- Begins to erase a person, or returns the erasure that was begun. From here on no write begins for them.
-- It waits for none that is under way: with as many of a person's own as follow each other closely
-- enough, it would never have its turn. `await_writers` does. Null where there is no such person.
CREATE OR REPLACE FUNCTION dispatch.begin_erasure(
  p_user uuid, p_requested_by text, p_erasure uuid DEFAULT NULL,
  p_by uuid DEFAULT NULL, p_account text DEFAULT NULL, p_route text DEFAULT NULL
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
  begun uuid;
BEGIN
  SELECT e.erasure_id INTO begun FROM public.erasures e WHERE e.subject = p_user;
  -- The person's reference as well, but no other one than is being deleted.
  PERFORM tenant.begin_act(p_by, CASE WHEN begun IS NULL THEN p_user END);
  IF begun IS NOT NULL THEN
    RETURN begun;
  END IF;
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE;
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
  IF p_requested_by = 'operator' THEN
    PERFORM tenant.audit_act(p_by, p_account, 'erasure_begun', p_route, p_user);
  ELSE
    INSERT INTO public.audit (reference, actor, action)
    VALUES (
      tenant.reference_of(p_user),
      CASE p_requested_by WHEN 'restore' THEN 'service' ELSE 'person' END, 'erasure_begun'
    );
  END IF;
  RETURN begun;
END $$;

-- Returns once nothing is being written for a person any more whose erasure has begun: the row is held
-- against every writer's FOR KEY SHARE, and whoever comes later is refused. A lock, not a check. Its own
-- transaction.
CREATE OR REPLACE FUNCTION dispatch.await_writers(p_user uuid) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'erasing' FOR UPDATE;
END $$;

-- Suspends a person, or lets them go on: then their runs are looked at by the next claim. Null where
-- there is nobody like that; their state else.
CREATE OR REPLACE FUNCTION dispatch.set_user_state(
  p_user uuid, p_state text, p_by uuid, p_account text, p_route text
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  found_state public.user_state;
BEGIN
  PERFORM tenant.begin_act(p_by, p_user);
  SELECT u.state INTO found_state FROM public.users u WHERE u.user_id = p_user FOR NO KEY UPDATE;
  IF found_state = 'erasing' OR p_state NOT IN ('active', 'suspended') THEN
    RAISE EXCEPTION 'this user is being erased' USING ERRCODE = 'ST003';
  ELSIF found_state::text <> p_state THEN
    UPDATE public.users u SET state = p_state::public.user_state, state_at = clock_timestamp()
    WHERE u.user_id = p_user;
    PERFORM tenant.audit_act(
      p_by, p_account, CASE p_state WHEN 'suspended' THEN 'suspended' ELSE 'resumed' END, p_route,
      p_user
    );
  END IF;
  RETURN CASE WHEN found_state IS NOT NULL THEN p_state END;
END $$;

-- Takes on an erasure that nobody works on, for so many seconds: one that nobody has tried yet, then the
-- one that was left for longest. So those that cannot go on keep back nobody else's.
CREATE OR REPLACE FUNCTION dispatch.claim_erasure(p_seconds float8)
RETURNS TABLE (erasure_id uuid, subject uuid, step text, attempts int)
LANGUAGE sql AS $$
  WITH chosen AS MATERIALIZED (
    SELECT o.erasure_id FROM public.erasures o
    WHERE o.step <> 'done'
      AND (o.working_until IS NULL OR o.working_until <= (SELECT clock_timestamp()))
    ORDER BY o.working_until NULLS FIRST, o.requested_at LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED
  )
  UPDATE public.erasures e
  SET attempts = e.attempts + 1,
      working_until = clock_timestamp() + make_interval(secs => p_seconds)
  FROM chosen c WHERE e.erasure_id = c.erasure_id
  RETURNING e.erasure_id, e.subject, e.step, e.attempts
$$;

-- Keeps a claimed one for so many seconds from now. False where somebody else has it.
CREATE OR REPLACE FUNCTION dispatch.keep_erasure(p_erasure uuid, p_attempts int, p_seconds float8)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.erasures e
  SET working_until = clock_timestamp() + make_interval(secs => p_seconds)
  WHERE e.erasure_id = p_erasure AND e.attempts = p_attempts AND e.step <> 'done';
  RETURN FOUND;
END $$;

-- Gives a claimed one back: it is looked at again after so many seconds. `p_failure`: what went wrong.
CREATE OR REPLACE FUNCTION dispatch.release_erasure(
  p_erasure uuid, p_attempts int, p_seconds float8, p_failure text
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.erasures e
  SET working_until = clock_timestamp() + make_interval(secs => p_seconds), failure = p_failure
  WHERE e.erasure_id = p_erasure AND e.attempts = p_attempts AND e.step <> 'done';
  RETURN FOUND;
END $$;

-- Goes on to a step, or stays at one, with what has come of it: numbers in place of smaller ones, since
-- what is done a second time finds less, and rows that were deleted added to those before. Once nothing
-- is left of the person, their id goes: refused while there is anybody of that id.
-- False where somebody else has the erasure.
CREATE OR REPLACE FUNCTION dispatch.advance_erasure(
  p_erasure uuid, p_attempts int, p_step text, p_facts jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF p_step IN ('sign', 'done') AND EXISTS (
    SELECT FROM public.erasures e JOIN public.users u ON u.user_id = e.subject
    WHERE e.erasure_id = p_erasure
  ) THEN
    RAISE EXCEPTION 'somebody is there still' USING ERRCODE = 'ST007';
  ELSIF p_step IN ('sign', 'done') THEN
    -- A hash of their id, too.
    UPDATE public.pools p SET failed_for = NULL FROM public.erasures e
    WHERE e.erasure_id = p_erasure AND p.failed_for = sha256(uuid_send(e.subject));
  END IF;
  UPDATE public.erasures e
  SET step = p_step, failure = NULL,
      subject = CASE WHEN p_step NOT IN ('sign', 'done') THEN e.subject END,
      keys_destroyed = greatest(e.keys_destroyed, (p_facts ->> 'keys_destroyed')::int),
      tokens_revoked = greatest(e.tokens_revoked, (p_facts ->> 'tokens_revoked')::int),
      tokens_not_revoked = greatest(e.tokens_not_revoked, (p_facts ->> 'tokens_not_revoked')::int),
      deleted = dispatch.added_up(e.deleted, p_facts -> 'deleted'),
      remaining = coalesce(p_facts -> 'remaining', e.remaining),
      receipt = coalesce(p_facts ->> 'receipt', e.receipt),
      verified_at = CASE WHEN p_step = 'sign' THEN clock_timestamp() ELSE e.verified_at END,
      ended_at = CASE WHEN p_step = 'done' THEN clock_timestamp() END,
      working_until = CASE WHEN p_step <> 'done' THEN e.working_until END
  WHERE e.erasure_id = p_erasure AND e.attempts = p_attempts AND e.step <> 'done';
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  IF p_step = 'done' THEN
    DELETE FROM public.erasure_stops s WHERE s.erasure_id = p_erasure;
  END IF;
  RETURN true;
END $$;

-- Two objects of counts, added up by name.
CREATE OR REPLACE FUNCTION dispatch.added_up(p_one jsonb, p_other jsonb) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(n.name, n.total), '{}') FROM (
    SELECT c.key AS name, sum(c.value::bigint) AS total
    FROM (
      SELECT * FROM jsonb_each_text(p_one) UNION ALL SELECT * FROM jsonb_each_text(p_other)
    ) AS c (key, value)
    GROUP BY c.key
  ) AS n
$$;

-- Who is being erased and has not been let go of by a worker.
CREATE OR REPLACE FUNCTION dispatch.erasures_to_stop(p_worker uuid)
RETURNS TABLE (erasure_id uuid, subject uuid)
LANGUAGE sql STABLE AS $$
  SELECT e.erasure_id, e.subject FROM public.erasures e
  WHERE e.step <> 'done' AND e.subject IS NOT NULL AND NOT EXISTS (
    SELECT FROM public.erasure_stops s
    WHERE s.erasure_id = e.erasure_id AND s.worker_id = p_worker
  )
  ORDER BY e.requested_at
$$;

-- A worker holds nothing of the person any more, and has deleted so many folders of theirs.
CREATE OR REPLACE FUNCTION dispatch.note_stop(p_erasure uuid, p_worker uuid, p_folders int)
RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.erasures e
  WHERE e.erasure_id = p_erasure AND e.step <> 'done' FOR NO KEY UPDATE;
  IF FOUND THEN
    INSERT INTO public.erasure_stops (erasure_id, worker_id) VALUES (p_erasure, p_worker)
    ON CONFLICT (erasure_id, worker_id) DO NOTHING;
    IF FOUND AND p_folders > 0 THEN
      UPDATE public.erasures e SET folders_deleted = e.folders_deleted + p_folders
      WHERE e.erasure_id = p_erasure;
    END IF;
  END IF;
END $$;

-- Ends up to p_limit runs of a person who is being erased. Those that a worker holds which lives and has
-- not let go are only told to stop: their ids come back, to be told of. A claim that was under way when
-- the erasure began is waited for: it may have found the person active.
CREATE OR REPLACE FUNCTION dispatch.end_runs(
  p_user uuid, p_limit int, OUT ended int, OUT held uuid[]
)
LANGUAGE plpgsql AS $$
DECLARE
  open_run record;
BEGIN
  ended := 0;
  held := '{}';
  BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0));
    RAISE SQLSTATE 'ST000';  -- taken back, and the lock with it: nobody's claim waits for what follows
  EXCEPTION WHEN SQLSTATE 'ST000' THEN
    NULL;
  END;
  PERFORM 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'erasing' FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  FOR open_run IN
    SELECT r.run_id, r.cancel_requested_at,
      r.state = 'running' AND EXISTS (
        SELECT FROM public.workers w
        WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
      ) AND NOT EXISTS (
        SELECT FROM public.erasures e JOIN public.erasure_stops s USING (erasure_id)
        WHERE e.subject = p_user AND s.worker_id = r.worker_id
      ) AS is_held
    FROM public.runs r
    WHERE r.user_id = p_user AND r.state IN ('pending', 'running', 'waiting')
    ORDER BY r.run_id LIMIT p_limit
    FOR NO KEY UPDATE
  LOOP
    IF NOT open_run.is_held THEN
      UPDATE public.runs r
      SET state = 'cancelled', fence = r.fence + 1, worker_id = NULL,
          cancel_requested_at = coalesce(r.cancel_requested_at, clock_timestamp()),
          cancel_action = coalesce(r.cancel_action, 'interrupt'),
          ended_at = clock_timestamp(), updated_at = clock_timestamp()
      WHERE r.user_id = p_user AND r.run_id = open_run.run_id;
      ended := ended + 1;
    ELSE
      held := held || open_run.run_id;
      IF open_run.cancel_requested_at IS NULL THEN
        UPDATE public.runs r
        SET cancel_requested_at = clock_timestamp(), cancel_action = 'interrupt',
            updated_at = clock_timestamp()
        WHERE r.user_id = p_user AND r.run_id = open_run.run_id;
      END IF;
    END IF;
  END LOOP;
END $$;

-- Whether nobody does anything for the person any more: every worker that lives has let go, no run is
-- open, no seat is held.
CREATE OR REPLACE FUNCTION dispatch.is_quiet(p_erasure uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT NOT EXISTS (
    SELECT FROM public.workers w
    WHERE w.lease_until > (SELECT clock_timestamp()) AND NOT EXISTS (
      SELECT FROM public.erasure_stops s
      WHERE s.erasure_id = e.erasure_id AND s.worker_id = w.worker_id
    )
  ) AND NOT EXISTS (
    SELECT FROM public.runs r
    WHERE r.user_id = e.subject AND r.state IN ('pending', 'running', 'waiting')
  ) AND NOT EXISTS (
    SELECT FROM public.model_calls c WHERE c.user_id = e.subject AND c.seat IS NOT NULL
  )
  FROM public.erasures e WHERE e.erasure_id = p_erasure
$$;

-- What a person has spent, as a tombstone keeps it: on this day of UTC, and before it in its month.
CREATE OR REPLACE FUNCTION dispatch.spent_by(
  p_user uuid, OUT day date, OUT in_day bigint, OUT in_month_before bigint
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  begins timestamptz := date_trunc('day', clock_timestamp(), 'UTC');
BEGIN
  day := (begins AT TIME ZONE 'UTC')::date;
  in_day := tenant.tokens_since(p_user, begins);
  in_month_before := tenant.tokens_since(p_user, date_trunc('month', begins, 'UTC')) - in_day;
END $$;

-- Sets up what stays of a person until so many seconds after they asked to leave: a hash for each of
-- their identities, with what they have spent, their limits, and whether they were suspended. Says when
-- that is over. As often as one likes: what stands there stays.
CREATE OR REPLACE FUNCTION dispatch.record_tombstones(
  p_erasure uuid, p_user_hash bytea, p_identity_hashes bytea[], p_key_id text, p_seconds float8
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
  erasure record;
  spent record;
BEGIN
  SELECT e.subject, e.was_suspended, e.requested_at + make_interval(secs => p_seconds) AS expires_at
  INTO STRICT erasure FROM public.erasures e
  -- Later nobody knows any more what they have spent: whoever slept until then says nothing.
  WHERE e.erasure_id = p_erasure AND e.subject IS NOT NULL FOR NO KEY UPDATE;
  spent := dispatch.spent_by(erasure.subject);
  INSERT INTO public.tombstones (
    erasure_id, identity_hash, user_hash, key_id, was_suspended, plan, limits, day, tokens_in_day,
    tokens_in_month_before, expires_at
  )
  SELECT p_erasure, h.identity_hash, p_user_hash, p_key_id, erasure.was_suspended, l.plan,
    coalesce(l.limits, '{}'), spent.day, spent.in_day, spent.in_month_before, erasure.expires_at
  FROM unnest(p_identity_hashes) AS h (identity_hash)
  LEFT JOIN public.user_limits l ON l.user_id = erasure.subject
  ON CONFLICT (erasure_id, identity_hash) DO NOTHING;
  RETURN erasure.expires_at;
END $$;

-- Brings what tombstones say was spent up to date, once nothing more can be. Not once rows are being
-- deleted: then nothing is known of it any more. False where somebody else has the erasure.
CREATE OR REPLACE FUNCTION dispatch.note_usage(p_erasure uuid, p_attempts int) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  who uuid;
  spent record;
BEGIN
  SELECT e.subject INTO who FROM public.erasures e
  WHERE e.erasure_id = p_erasure AND e.attempts = p_attempts
    AND e.step IN ('record', 'revoke', 'destroy_keys', 'stop')
  FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  spent := dispatch.spent_by(who);
  UPDATE public.tombstones t
  SET day = spent.day, tokens_in_day = spent.in_day, tokens_in_month_before = spent.in_month_before
  WHERE t.erasure_id = p_erasure;
  RETURN true;
END $$;
