-- The life of a run, behind the tenant door. Locks are taken in one order everywhere:
-- user, thread, runs by their id.

-- What an Idempotency-Key has made before under this route; remembers p_resource for it if nothing
-- has. The same key with another body is refused. Taken before any other lock but the user's.
CREATE OR REPLACE FUNCTION tenant.take_idempotency_key(
  p_user uuid, p_route text, p_key text, p_fingerprint bytea, p_resource uuid
) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  taken record;
BEGIN
  INSERT INTO public.idempotency_keys AS k (user_id, route, key, fingerprint, resource_id)
  VALUES (p_user, p_route, p_key, p_fingerprint, p_resource)
  ON CONFLICT (user_id, route, key) DO UPDATE
    SET fingerprint = EXCLUDED.fingerprint, resource_id = EXCLUDED.resource_id,
        created_at = clock_timestamp()
    WHERE k.created_at < (SELECT clock_timestamp()) - interval '24 hours';
  SELECT fingerprint, resource_id INTO STRICT taken
  FROM public.idempotency_keys WHERE user_id = p_user AND route = p_route AND key = p_key;
  IF taken.fingerprint <> p_fingerprint THEN
    RAISE EXCEPTION 'the key was used with another body' USING ERRCODE = 'ST005';
  END IF;
  RETURN taken.resource_id;
END $$;

-- Puts a run into its thread's queue; no row when there is no such thread. The update of the
-- thread is also the lock under which the strategy is decided and that orders its runs.
-- Another run's id comes back when the idempotency key has made that one before.
CREATE OR REPLACE FUNCTION tenant.accept_run(
  p_user uuid, p_thread uuid, p_run uuid, p_assistant uuid, p_graph text,
  p_request jsonb, p_metadata jsonb, p_title text, p_create boolean, p_strategy text,
  p_priority int, p_after_seconds float8, p_defaults jsonb,
  p_route text, p_key text, p_fingerprint bytea, p_request_id text DEFAULT NULL
) RETURNS TABLE (run_id uuid, accepted_at timestamptz, stopping uuid[], ended uuid[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  stopped record;
BEGIN
  PERFORM tenant.begin_write(p_user);
  stopping := '{}';
  ended := '{}';
  IF p_key IS NOT NULL THEN
    run_id := tenant.take_idempotency_key(p_user, p_route, p_key, p_fingerprint, p_run);
    IF run_id <> p_run THEN
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  PERFORM tenant.require_room(p_user, tenant.limits_of(p_user, p_defaults));
  UPDATE public.threads t
  SET updated_at = clock_timestamp(), title = coalesce(t.title, p_title),
      unpruned_since = coalesce(t.unpruned_since, clock_timestamp())
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NULL;
  IF NOT FOUND THEN
    IF NOT p_create THEN
      DELETE FROM public.idempotency_keys k
      WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
      RETURN;
    END IF;
    INSERT INTO public.threads AS t (user_id, thread_id, title, unpruned_since)
    VALUES (p_user, p_thread, p_title, clock_timestamp())
    ON CONFLICT (user_id, thread_id) DO UPDATE
      SET updated_at = clock_timestamp(),
          unpruned_since = coalesce(t.unpruned_since, clock_timestamp())
      WHERE t.deleted_at IS NULL;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the thread is being deleted' USING ERRCODE = 'ST004';
    END IF;
    PERFORM tenant.require_threads(p_user, tenant.limits_of(p_user, p_defaults));
  END IF;
  IF p_strategy = 'reject' AND EXISTS (
    SELECT 1 FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread
      AND r.state IN ('pending', 'running', 'waiting')
  ) THEN
    RAISE EXCEPTION 'the thread is busy' USING ERRCODE = 'ST004';
  END IF;
  FOR stopped IN
    SELECT c.run_id, c.state FROM tenant.cancel_open_runs(
      p_user, p_thread, NULL,
      -- A person who writes on does not want what was waiting for them.
      CASE WHEN p_strategy IN ('interrupt', 'rollback') THEN NULL ELSE '{waiting}'::text[] END,
      CASE WHEN p_strategy = 'rollback' THEN 'rollback' ELSE 'interrupt' END
    ) c
  LOOP
    IF stopped.state = 'running' THEN
      stopping := stopping || stopped.run_id;
    ELSE
      ended := ended || stopped.run_id;
    END IF;
  END LOOP;
  run_id := p_run;
  -- Clocks may be set back; a thread's runs stay in the order in which they came.
  SELECT greatest(clock_timestamp(), max(r.created_at) + interval '1 microsecond')
  INTO accepted_at
  FROM public.runs r WHERE r.user_id = p_user AND r.thread_id = p_thread;
  INSERT INTO public.runs (
    user_id, run_id, thread_id, assistant_id, graph_id, request, metadata, multitask_strategy,
    priority, due_at, created_at, updated_at, request_id
  )
  VALUES (
    p_user, p_run, p_thread, p_assistant, p_graph, p_request, p_metadata, p_strategy,
    p_priority, accepted_at + make_interval(secs => p_after_seconds), accepted_at, accepted_at,
    p_request_id
  );
  RETURN NEXT;
END $$;

-- Begins an attempt: what a claimed run needs to be executed, the thread's newest checkpoint
-- (which LangGraph asks for first), and the run's first event, all in one round trip.
-- A claim is not on disk before this is: after a crash in between, another worker's claim has the
-- same fence, so here, and only here, the worker counts too.
-- Steps are counted from the checkpoints that the run's earlier attempts left.
CREATE OR REPLACE FUNCTION tenant.begin_attempt(
  p_user uuid, p_run uuid, p_fence bigint, p_worker uuid
) RETURNS TABLE (
  run_thread_id uuid, graph_id text, request jsonb, run_metadata jsonb, attempt int, next_seq int,
  attempts_spent int, active_seconds float8, cancel_requested boolean, steps int,
  follows_failure boolean, resume jsonb, approvals jsonb, request_id text,
  thread_id text, checkpoint jsonb, checkpoint_ns text, checkpoint_id text,
  parent_checkpoint_id text, metadata jsonb, channel_values bytea[], pending_writes bytea[]
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  run record;
  seq int;
  steps int := 0;
  unfinished boolean;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence);
  SELECT r.thread_id, r.graph_id, r.request, r.metadata, r.attempt, r.attempts_spent,
    r.active_seconds, r.cancel_requested_at IS NOT NULL AS cancel_requested, r.resume,
    r.request_id
  INTO run
  FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run AND r.worker_id = p_worker;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  SELECT coalesce(max(e.seq), 0) + 1 INTO seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
  IF run.attempt > 1 THEN
    SELECT count(*) INTO steps FROM public.checkpoints c
    WHERE c.user_id = p_user AND c.thread_id = run.thread_id AND c.checkpoint_ns = ''
      AND c.run_id = p_run AND c.metadata ->> 'source' = 'loop';
  END IF;
  -- Whoever wrote the newest state may have left something undone; also one that was deleted.
  SELECT r.state IS DISTINCT FROM 'success' INTO unfinished
  FROM public.checkpoints c
  LEFT JOIN public.runs r ON r.user_id = c.user_id AND r.run_id = c.run_id
  WHERE c.user_id = p_user AND c.thread_id = run.thread_id AND c.checkpoint_ns = ''
  ORDER BY c.checkpoint_id DESC LIMIT 1;
  IF seq = 1 THEN
    PERFORM tenant.count_usage(p_user, 1, 0);
  END IF;
  INSERT INTO public.run_events (user_id, run_id, seq, event, data)
  VALUES (
    p_user, p_run, seq, 'metadata',
    convert_to(format('{"run_id":"%s","attempt":%s}', p_run, run.attempt), 'UTF8')
  );
  RETURN QUERY
  SELECT run.thread_id, run.graph_id, run.request, run.metadata, run.attempt, seq + 1,
    run.attempts_spent, run.active_seconds, run.cancel_requested, steps,
    coalesce(unfinished, false), run.resume, tenant.decisions_of(p_user, p_run),
    run.request_id, c.*
  FROM (SELECT) AS one
  LEFT JOIN tenant.read_checkpoint(p_user, run.thread_id::text, '', NULL) AS c ON true;
END $$;

-- Ends a run, or lets it wait for a person: the last events and the outcome commit together, so
-- nobody can read `end` before both. A run whose cancel was accepted ends as cancelled, whatever
-- its worker says; then there is no error to tell. Returns the state that it is in now.
-- What the person is asked (`ask_person`) is open as soon as the run waits. One that would wait for
-- nothing, since it asks again what was decided, would do so for ever: it fails.
-- The row is locked for update first (share-then-update would deadlock).
CREATE OR REPLACE FUNCTION tenant.settle_run(
  p_user uuid, p_run uuid, p_fence bigint, p_state text,
  p_error_code text, p_error_message text, p_first_seq int,
  p_events text[], p_data bytea[], p_ns text[], p_checkpoint text[], p_tool_calls int DEFAULT 0,
  p_approvals jsonb DEFAULT NULL, p_expire_seconds float8 DEFAULT NULL
) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
  run record;
  kept int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  SELECT r.cancel_requested_at IS NOT NULL AS is_cancelled INTO run
  FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.fence = p_fence AND r.state = 'running'
    AND EXISTS (
      SELECT 1 FROM public.workers w
      WHERE w.worker_id = r.worker_id AND w.lease_until > (SELECT clock_timestamp())
    )
  FOR NO KEY UPDATE OF r;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the lease is lost' USING ERRCODE = 'ST001';
  END IF;
  IF p_tool_calls > 0 THEN
    PERFORM tenant.count_usage(p_user, 0, p_tool_calls);
  END IF;
  IF run.is_cancelled THEN
    -- An error is told last, and a cancelled run has none.
    kept := cardinality(p_events)
      - coalesce((p_events[cardinality(p_events)] = 'error')::int, 0);
    PERFORM tenant.insert_events(
      p_user, p_run, p_first_seq, p_events[:kept], p_data[:kept], p_ns[:kept], p_checkpoint[:kept]
    );
    PERFORM tenant.end_as_cancelled(p_user, p_run);
    RETURN 'cancelled';
  END IF;
  PERFORM tenant.insert_events(
    p_user, p_run, p_first_seq, p_events, p_data, p_ns, p_checkpoint
  );
  IF p_state = 'waiting' AND jsonb_array_length(p_approvals) > 0
    AND NOT tenant.ask_person(p_user, p_run, p_fence, p_approvals, p_expire_seconds)
  THEN
    p_state := 'error';
    p_error_code := 'nothing_to_decide';
    p_error_message := 'The assistant asked again what was decided already. Send the message again.';
  END IF;
  UPDATE public.runs r
  SET state = p_state::public.run_state, error_code = p_error_code, error_message = p_error_message,
      worker_id = NULL, updated_at = clock_timestamp(),
      ended_at = CASE WHEN p_state <> 'waiting' THEN clock_timestamp() END
  WHERE r.user_id = p_user AND r.run_id = p_run;
  IF p_state = 'waiting' THEN
    -- What came of a call in doubt may be known by now: then the run goes on.
    PERFORM tenant.close_answered_doubts(p_user, p_run);
  END IF;
  RETURN p_state;
END $$;
