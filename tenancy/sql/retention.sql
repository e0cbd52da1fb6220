-- What is kept for a while only, behind the tenant door: one person's rows, a batch at a time. Each
-- says how many rows it dropped, and is done once there is nothing left to do, or somebody else is at
-- it. What must be true for a row to go is asked again under its lock.

-- Drops the pieces in which an ended run's messages came, since its thread's state holds the
-- messages. Not those of a run that did not succeed: its last words may be nowhere else.
-- `pruned_through` says where readers will find gaps.
CREATE OR REPLACE FUNCTION tenant.prune_deltas(
  p_user uuid, p_run uuid, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  run record;
  through int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  dropped := 0;
  done := true;
  SELECT r.state = 'success' AS has_its_messages INTO run
  FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.ended_at IS NOT NULL AND r.pruned_at IS NULL
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF run.has_its_messages THEN
    WITH deltas AS (
      SELECT e.seq FROM public.run_events e
      WHERE e.user_id = p_user AND e.run_id = p_run
        AND (e.event = 'messages' OR e.event LIKE 'messages|%' OR e.event LIKE 'messages/partial%')
      ORDER BY e.seq LIMIT p_limit
    ),
    gone AS (
      DELETE FROM public.run_events e USING deltas d
      WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq = d.seq
      RETURNING e.seq
    )
    SELECT count(*), max(gone.seq) INTO dropped, through FROM gone;
  END IF;
  done := dropped < p_limit;
  UPDATE public.runs r
  SET pruned_through = greatest(r.pruned_through, coalesce(through, 0)),
      pruned_at = CASE WHEN done THEN clock_timestamp() END
  WHERE r.user_id = p_user AND r.run_id = p_run;
END $$;

-- Drops an ended run's whole log, from its beginning. `log_dropped_through` says how far.
CREATE OR REPLACE FUNCTION tenant.drop_log(
  p_user uuid, p_run uuid, p_older_than float8, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  through int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  dropped := 0;
  done := true;
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.log_dropped_at IS NULL
    AND r.ended_at < clock_timestamp() - make_interval(secs => p_older_than)
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  WITH first AS (
    SELECT e.seq FROM public.run_events e
    WHERE e.user_id = p_user AND e.run_id = p_run ORDER BY e.seq LIMIT p_limit
  ),
  gone AS (
    DELETE FROM public.run_events e USING first f
    WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq = f.seq
    RETURNING e.seq
  )
  SELECT count(*), max(gone.seq) INTO dropped, through FROM gone;
  done := dropped < p_limit;
  UPDATE public.runs r
  SET log_dropped_through = greatest(r.log_dropped_through, r.pruned_through, through),
      log_dropped_at = CASE WHEN done THEN clock_timestamp() END,
      pruned_at = CASE WHEN done THEN coalesce(r.pruned_at, clock_timestamp()) ELSE r.pruned_at END
  WHERE r.user_id = p_user AND r.run_id = p_run;
END $$;

-- Drops an ended run with all that is left of its log. What it wrote to its thread stays.
CREATE OR REPLACE FUNCTION tenant.drop_run(
  p_user uuid, p_run uuid, p_older_than float8, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  of_thread uuid;
  through int;
BEGIN
  PERFORM tenant.begin_write(p_user);
  dropped := 0;
  done := true;
  SELECT r.thread_id INTO of_thread FROM public.runs r
  WHERE r.user_id = p_user AND r.run_id = p_run
    AND r.ended_at < clock_timestamp() - make_interval(secs => p_older_than)
  FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  WITH first AS (
    SELECT e.seq FROM public.run_events e
    WHERE e.user_id = p_user AND e.run_id = p_run ORDER BY e.seq LIMIT p_limit
  ),
  gone AS (
    DELETE FROM public.run_events e USING first f
    WHERE e.user_id = p_user AND e.run_id = p_run AND e.seq = f.seq
    RETURNING e.seq
  )
  SELECT count(*), max(gone.seq) INTO dropped, through FROM gone;
  IF dropped >= p_limit THEN
    done := false;
    UPDATE public.runs r SET log_dropped_through = greatest(r.log_dropped_through, through)
    WHERE r.user_id = p_user AND r.run_id = p_run;
    RETURN;
  END IF;
  PERFORM tenant.leave_queues(p_user, of_thread, p_run);
  DELETE FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run;
  dropped := dropped + 1;
END $$;

-- Marks a thread as deleted whose time is over: its own, or the one that any may lie idle (null: any
-- time). A thread with an open run is not idle, and one is idle since its last run ended, or since
-- it was changed later than that.
CREATE OR REPLACE FUNCTION tenant.expire_thread(
  p_user uuid, p_thread uuid, p_idle_seconds float8, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  thread record;
BEGIN
  PERFORM tenant.begin_write(p_user);
  dropped := 0;
  done := true;
  SELECT t.updated_at, least(p_idle_seconds, t.ttl_minutes * 60) AS seconds INTO thread
  FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NULL
  FOR UPDATE SKIP LOCKED;
  IF NOT FOUND OR EXISTS (
    SELECT FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread
      AND (r.ended_at IS NULL OR r.ended_at > clock_timestamp() - make_interval(secs => thread.seconds))
  ) THEN
    RETURN;
  END IF;
  UPDATE public.threads t SET deleted_at = clock_timestamp()
  WHERE t.user_id = p_user AND t.thread_id = p_thread
    AND thread.updated_at <= clock_timestamp() - make_interval(secs => thread.seconds);
  GET DIAGNOSTICS dropped = ROW_COUNT;
END $$;

-- Forgets idempotency keys that mean nothing any more.
CREATE OR REPLACE FUNCTION tenant.drop_idempotency_keys(
  p_user uuid, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.idempotency_keys k
  WHERE k.user_id = p_user AND (k.route, k.key) IN (
    SELECT o.route, o.key FROM public.idempotency_keys o
    WHERE o.user_id = p_user AND o.created_at < (SELECT clock_timestamp()) - interval '24 hours'
    ORDER BY o.route, o.key LIMIT p_limit
    FOR UPDATE
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  done := dropped < p_limit;
END $$;

-- Forgets what somebody used that no budget counts any more.
CREATE OR REPLACE FUNCTION tenant.drop_usage(
  p_user uuid, p_older_than float8, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.usage_hours h
  WHERE h.user_id = p_user AND (h.hour, h.model) IN (
    SELECT o.hour, o.model FROM public.usage_hours o
    WHERE o.user_id = p_user
      AND o.hour < (SELECT clock_timestamp()) - make_interval(secs => p_older_than)
    ORDER BY o.hour, o.model LIMIT p_limit
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  done := dropped < p_limit;
END $$;

-- Forgets what somebody wrote that went on record; the facts go by themselves.
CREATE OR REPLACE FUNCTION tenant.drop_audit_texts(
  p_user uuid, p_older_than float8, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  DELETE FROM public.audit_texts a
  WHERE a.user_id = p_user AND (a.audit_id, a.kind) IN (
    SELECT o.audit_id, o.kind FROM public.audit_texts o
    WHERE o.user_id = p_user
      AND o.at < (SELECT clock_timestamp()) - make_interval(secs => p_older_than)
    ORDER BY o.audit_id, o.kind LIMIT p_limit
  );
  GET DIAGNOSTICS dropped = ROW_COUNT;
  done := dropped < p_limit;
END $$;
