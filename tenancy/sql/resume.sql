-- Answering what a run waits for, behind the tenant door. Locks come in the order of `runs.sql`.

-- Has a waiting run of an operator's graph go on with what a person answered; what the built-in one
-- asks is decided by `decide_approvals`. `p_fence` is the one under which the questions
-- were read: since then the run may have been answered, gone on, and come to wait for something else.
-- Returns the run with the last event of its log, after which it goes on; another run, or the same one
-- without that, when the idempotency key has been used for it before.
CREATE OR REPLACE FUNCTION tenant.resume_run(
  p_user uuid, p_thread uuid, p_run uuid, p_fence bigint, p_resume jsonb,
  p_candidate uuid, p_route text, p_key text, p_fingerprint bytea
) RETURNS TABLE (run_id uuid, resumed_at timestamptz, last_seq int)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_write(p_user);
  run_id := p_run;
  IF p_key IS NOT NULL THEN
    -- The run is no candidate of its own: whoever comes second must not find the key to be theirs.
    run_id := tenant.take_idempotency_key(p_user, p_route, p_key, p_fingerprint, p_candidate);
    IF run_id <> p_candidate THEN
      RETURN NEXT;
      RETURN;
    END IF;
    run_id := p_run;
    UPDATE public.idempotency_keys k SET resource_id = p_run
    WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
  END IF;
  UPDATE public.threads t SET updated_at = clock_timestamp()
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NULL;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'there is no such thread' USING ERRCODE = 'ST006';
  END IF;
  -- Of several answers at once, each waits here for the one before.
  PERFORM 1 FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run FOR NO KEY UPDATE;
  resumed_at := clock_timestamp();
  UPDATE public.runs r SET state = 'pending', resume = p_resume, updated_at = resumed_at
  WHERE r.user_id = p_user AND r.run_id = p_run AND r.thread_id = p_thread
    AND r.state = 'waiting' AND r.fence = p_fence
    AND NOT EXISTS (
      SELECT FROM public.approvals a
      WHERE a.user_id = p_user AND a.run_id = p_run AND a.state = 'open'
    );
  IF NOT FOUND THEN
    RAISE EXCEPTION 'nothing waits for this answer' USING ERRCODE = 'ST009';
  END IF;
  SELECT coalesce(max(e.seq), 0) INTO last_seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
  RETURN NEXT;
END $$;
