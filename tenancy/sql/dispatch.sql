-- The cross-user door: queue and leases, for the dispatch role. SECURITY INVOKER, so the
-- role's column grants hold: nothing here can read what people say.

CREATE SCHEMA IF NOT EXISTS dispatch;

CREATE OR REPLACE FUNCTION dispatch.register_worker(
  p_worker uuid, p_host text, p_pid int, p_process_started_at timestamptz, p_lease_seconds float8
) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO public.workers (worker_id, host, pid, process_started_at, started_at, lease_until)
  SELECT p_worker, p_host, p_pid, p_process_started_at,
    now.at, now.at + make_interval(secs => p_lease_seconds)
  FROM (SELECT clock_timestamp() AS at) AS now;
$$;

-- False when the lease has run out: it is never revived, the worker must start anew.
CREATE OR REPLACE FUNCTION dispatch.renew_lease(p_worker uuid, p_lease_seconds float8)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.workers
  SET lease_until = clock_timestamp() + make_interval(secs => p_lease_seconds)
  WHERE worker_id = p_worker AND lease_until > (SELECT clock_timestamp());
  RETURN FOUND;
END $$;

-- The virtual time of a person's use of the default model. Nothing for somebody who has not used it:
-- it would have to be brought up to date for everybody at once.
CREATE OR REPLACE FUNCTION dispatch.rank_of(p_user uuid, p_model text) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT coalesce(
    (SELECT u.vtime FROM public.model_users u WHERE u.user_id = p_user AND u.model = p_model), 0
  )
$$;

-- The run that is next within one person: the head of a thread whose turn it is, by priority, then
-- first come. NULL when there is none. Whatever the clock says, a run that holds its thread is its
-- head, and one that was not put off is due: a clock may be set back.
CREATE OR REPLACE FUNCTION dispatch.head_of(
  p_user uuid, p_at timestamptz DEFAULT clock_timestamp()
) RETURNS uuid
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN (
    SELECT r.run_id
    FROM public.runs r
    WHERE r.state = 'pending' AND r.user_id = p_user
      AND (r.fence > 0 OR (
        (r.due_at <= p_at OR r.due_at <= r.created_at)
        AND NOT EXISTS (
          SELECT 1 FROM public.runs o
          WHERE o.user_id = r.user_id AND o.thread_id = r.thread_id
            AND (o.state IN ('running', 'waiting') OR (o.state = 'pending' AND o.fence > 0))
        )
        AND NOT EXISTS (
          SELECT 1 FROM public.runs o
          WHERE o.user_id = r.user_id AND o.thread_id = r.thread_id AND o.state = 'pending'
            AND (o.due_at, o.run_id) < (r.due_at, r.run_id)
        )
      ))
    ORDER BY r.priority DESC, r.due_at, r.run_id
    LIMIT 1
  );
END $$;

-- Claims up to p_slots runs, heads of their threads only, for those first who have used least of
-- the default model; no user above their cap of runs at once. Claims are serialised, which is what
-- makes the cap exact. The cost depends neither on how many runs wait nor on how many people. As with
-- seats, there is no credit for having been idle: whoever is served goes on from where claims are.
CREATE OR REPLACE FUNCTION dispatch.claim_runs(
  p_worker uuid, p_slots int, p_model text, p_defaults jsonb
) RETURNS TABLE (user_id uuid, run_id uuid, fence bigint)
-- Behind a policy the planner knows nothing of how many runs are in which state, and takes the few
-- that wait for most of the table.
LANGUAGE plpgsql SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
  claimed int := 0;
  who record;
  head uuid;
  looked_at timestamptz;
  reached bigint;
  least_cost float8;
  at_rank bigint := -9223372036854775808;
  at_served timestamptz := '-infinity';
  at_user uuid := '00000000-0000-0000-0000-000000000000';
BEGIN
  -- A claim need not be on disk by itself: the attempt that begins with it is, and flushes it.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM pg_advisory_xact_lock(hashtextextended('stoa.claim_runs', 0));
  -- Held, so that a worker does not leave, or is cleared away, while it is given something.
  PERFORM 1 FROM public.workers w
  WHERE w.worker_id = p_worker AND NOT w.draining
    AND w.lease_until > (SELECT clock_timestamp())
  FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  UPDATE public.run_queues q SET claimable = true, wake_at = NULL
  WHERE q.user_id IN (
    SELECT s.user_id FROM public.run_queues s
    WHERE s.wake_at <= (SELECT clock_timestamp())
    FOR NO KEY UPDATE SKIP LOCKED
  );
  -- A claim is reckoned at a quarter of a usual call at least: runs that never ask the default model
  -- would else leave those behind for ever who have.
  SELECT c.vnow, coalesce(m.estimate, dispatch.highest_cost(m.context, m.output) / 2, 1000) / 4
  INTO STRICT reached, least_cost
  FROM public.claims c LEFT JOIN public.models m ON m.model = p_model;
  WHILE claimed < p_slots LOOP
    -- No claim waits for one person's transaction; who is passed over says so when it has ended.
    -- Everybody moves back who was looked at, so there is nobody to be found before them.
    SELECT q.user_id, q.rank, q.served_at, dispatch.rank_of(q.user_id, p_model) AS rank_now
    INTO who
    FROM public.run_queues q
    WHERE q.claimable AND (q.rank, q.served_at, q.user_id) > (at_rank, at_served, at_user)
    ORDER BY q.rank, q.served_at, q.user_id LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED;
    EXIT WHEN NOT FOUND;
    at_rank := who.rank;
    at_served := who.served_at;
    at_user := who.user_id;
    IF who.rank_now > who.rank THEN
      UPDATE public.run_queues q SET rank = who.rank_now WHERE q.user_id = who.user_id;
      CONTINUE;
    END IF;
    IF NOT dispatch.has_room(who.user_id, p_defaults) THEN
      UPDATE public.run_queues q SET claimable = false WHERE q.user_id = who.user_id;
      CONTINUE;
    END IF;
    -- One moment for what is due and what is not: a run between two would be woken by nobody.
    looked_at := clock_timestamp();
    head := dispatch.head_of(who.user_id, looked_at);
    IF head IS NULL THEN
      UPDATE public.run_queues q
      SET claimable = false,
          wake_at = (
            SELECT min(r.due_at) FROM public.runs r
            WHERE r.user_id = who.user_id AND r.state = 'pending' AND r.due_at > looked_at
          )
      WHERE q.user_id = who.user_id;
      CONTINUE;
    END IF;
    -- Somebody may be cancelling it.
    PERFORM 1 FROM public.runs r
    WHERE r.user_id = who.user_id AND r.run_id = head AND r.state = 'pending'
    FOR NO KEY UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    reached := greatest(reached, who.rank);
    UPDATE public.run_queues q
    SET rank = reached + dispatch.virtual(
          least_cost, coalesce((tenant.limits_of(who.user_id, p_defaults) ->> 'weight')::float8, 1)
        ),
        served_at = clock_timestamp()
    WHERE q.user_id = who.user_id;
    claimed := claimed + 1;
    RETURN QUERY
    UPDATE public.runs r
    SET state = 'running', fence = r.fence + 1, attempt = r.attempt + 1,
        worker_id = p_worker, claimed_at = clock_timestamp(), updated_at = clock_timestamp()
    WHERE r.user_id = who.user_id AND r.run_id = head AND r.state = 'pending'
    RETURNING r.user_id, r.run_id, r.fence;
  END LOOP;
  UPDATE public.claims c SET vnow = reached WHERE c.vnow < reached;
END $$;

-- Whether one more run of a person may be executed now.
CREATE OR REPLACE FUNCTION dispatch.has_room(p_user uuid, p_defaults jsonb) RETURNS boolean
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
  RETURN EXISTS (SELECT 1 FROM public.users u WHERE u.user_id = p_user AND u.state = 'active')
    AND coalesce(
      (SELECT count(*) FROM public.runs r WHERE r.user_id = p_user AND r.state = 'running')
        < (tenant.limits_of(p_user, p_defaults) ->> 'running')::int,
      true
    );
END $$;

-- Puts runs of dead workers back into the queue under a higher fence; each has spent an attempt.
-- Says how many. What somebody else has locked just now is left for the next round.
CREATE OR REPLACE FUNCTION dispatch.reap_expired_leases() RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  reaped int := 0;
  lost record;
  dead uuid[];
BEGIN
  -- One after the other, and in one order everywhere: each also calls up its user's queue.
  FOR lost IN
    SELECT r.user_id, r.run_id
    FROM public.runs r JOIN public.workers w ON w.worker_id = r.worker_id
    WHERE r.state = 'running' AND w.lease_until <= (SELECT clock_timestamp())
    ORDER BY r.user_id, r.run_id
    FOR NO KEY UPDATE OF r SKIP LOCKED
  LOOP
    UPDATE public.runs r
    SET state = 'pending', fence = r.fence + 1, attempts_spent = r.attempts_spent + 1,
        worker_id = NULL, updated_at = clock_timestamp()
    WHERE r.user_id = lost.user_id AND r.run_id = lost.run_id;
    reaped := reaped + 1;
  END LOOP;
  -- First held, then looked at: a claim that began while the lease lived may have just ended.
  dead := ARRAY(
    SELECT w.worker_id FROM public.workers w
    WHERE w.lease_until <= (SELECT clock_timestamp())
    ORDER BY w.worker_id FOR UPDATE SKIP LOCKED
  );
  DELETE FROM public.workers w
  WHERE w.worker_id = ANY (dead)
    AND NOT EXISTS (SELECT 1 FROM public.runs r WHERE r.worker_id = w.worker_id);
  RETURN reaped;
END $$;

-- What a worker holds: each run with its fence, and whether its cancel was asked for.
CREATE OR REPLACE FUNCTION dispatch.held_runs(p_worker uuid)
RETURNS TABLE (user_id uuid, run_id uuid, fence bigint, cancel_requested boolean)
LANGUAGE sql STABLE AS $$
  SELECT r.user_id, r.run_id, r.fence, r.cancel_requested_at IS NOT NULL
  FROM public.runs r WHERE r.state = 'running' AND r.worker_id = p_worker;
$$;

-- Of these people, those for whom nothing may be written: they are suspended, leave, or have left.
CREATE OR REPLACE FUNCTION dispatch.unavailable_of(p_users uuid[]) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT o.user_id FROM unnest(p_users) AS o (user_id)
  WHERE NOT EXISTS (
    SELECT FROM public.users u WHERE u.user_id = o.user_id AND u.state = 'active'
  )
$$;

-- Gives back one run that a living worker does not bring to its end. An attempt is spent only
-- where that was no orderly leave.
CREATE OR REPLACE FUNCTION dispatch.release_run(
  p_user uuid, p_run uuid, p_fence bigint, p_spend boolean
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.runs r
  SET state = 'pending', fence = r.fence + 1,
      attempts_spent = r.attempts_spent + p_spend::int,
      worker_id = NULL, updated_at = clock_timestamp()
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.fence = p_fence AND r.state = 'running';
  RETURN FOUND;
END $$;

-- Gives back what a worker holds, all but p_known, without an attempt spent. Says how many.
CREATE OR REPLACE FUNCTION dispatch.release_runs_but(p_worker uuid, p_known uuid[])
RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  released int := 0;
  held record;
BEGIN
  FOR held IN
    SELECT r.user_id, r.run_id FROM public.runs r
    WHERE r.state = 'running' AND r.worker_id = p_worker AND r.run_id <> ALL (p_known)
    ORDER BY r.user_id, r.run_id
    FOR NO KEY UPDATE
  LOOP
    UPDATE public.runs r
    SET state = 'pending', fence = r.fence + 1, worker_id = NULL, updated_at = clock_timestamp()
    WHERE r.user_id = held.user_id AND r.run_id = held.run_id;
    released := released + 1;
  END LOOP;
  RETURN released;
END $$;

-- A worker that is told to end claims nothing more, and says so.
CREATE OR REPLACE FUNCTION dispatch.drain_worker(p_worker uuid) RETURNS void
LANGUAGE sql AS $$
  UPDATE public.workers SET draining = true WHERE worker_id = p_worker;
$$;

-- A worker's orderly leave: what it still holds goes back to the queue at once.
CREATE OR REPLACE FUNCTION dispatch.retire_worker(p_worker uuid) RETURNS int
LANGUAGE plpgsql AS $$
DECLARE
  released int;
BEGIN
  -- A claim of its own that is still under way comes first, or its runs would be left behind.
  PERFORM 1 FROM public.workers w WHERE w.worker_id = p_worker FOR UPDATE;
  released := dispatch.release_runs_but(p_worker, '{}');
  DELETE FROM public.workers WHERE worker_id = p_worker;
  RETURN released;
END $$;

-- Runs with questions that nobody decided in time, those first that are over longest. Not those of
-- people for whom nothing may be written now.
CREATE OR REPLACE FUNCTION dispatch.find_expired_approvals(p_limit int)
RETURNS TABLE (user_id uuid, run_id uuid)
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT o.user_id, o.run_id
  FROM (
    SELECT a.user_id, a.run_id
    FROM public.approvals a JOIN public.users u USING (user_id)
    WHERE a.state = 'open' AND a.expires_at <= (SELECT clock_timestamp()) AND u.state = 'active'
    ORDER BY a.expires_at LIMIT p_limit
  ) AS o
$$;
