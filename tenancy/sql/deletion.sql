-- Deleting runs and threads, behind the tenant door. The caller has bound the user for writing,
-- except where it says otherwise. Locks: user, thread, runs by their id.

-- Deletes a run with its log and its attempts; what it wrote to its thread stays. Says in which
-- state it was; no row when there is none. A worker that has it fails at its next write.
CREATE OR REPLACE FUNCTION tenant.delete_run(
  p_user uuid, p_thread uuid, p_run uuid
) RETURNS TABLE (run_id uuid, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM 1 FROM public.runs r JOIN public.threads t USING (user_id, thread_id)
  WHERE r.user_id = p_user AND r.thread_id = p_thread AND r.run_id = p_run
    AND t.deleted_at IS NULL
  FOR UPDATE OF r;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM tenant.leave_queues(p_user, p_thread, p_run);
  PERFORM tenant.supersede_approvals(p_user, p_run, 'deleted');
  RETURN QUERY
  DELETE FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run
  RETURNING r.run_id, r.state::text;
  PERFORM tenant.call_up(p_user);
END $$;

-- Deletes a thread with everything in it. One of more than p_most rows is only marked: its open
-- runs end as cancelled, so that nothing is written any more, and `delete_thread_rows` does the
-- rest. Says which runs were open, and in which state; one row without a run when none was; no row
-- when there is no such thread.
CREATE OR REPLACE FUNCTION tenant.delete_thread(
  p_user uuid, p_thread uuid, p_most int
) RETURNS TABLE (run_id uuid, state text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  found_rows bigint;
  open_run record;
  any_open boolean := false;
BEGIN
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NULL
  FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.thread_id = p_thread
  ORDER BY r.run_id
  FOR UPDATE;
  found_rows := tenant.count_thread_rows(p_user, p_thread, p_most + 1);
  FOR open_run IN
    SELECT r.run_id, r.state FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread
      AND r.state IN ('pending', 'running', 'waiting')
    ORDER BY r.run_id
  LOOP
    any_open := true;
    IF found_rows > p_most THEN
      PERFORM tenant.end_as_cancelled(p_user, open_run.run_id, 'interrupt');
    ELSE
      PERFORM tenant.supersede_approvals(p_user, open_run.run_id, 'deleted');
    END IF;
    run_id := open_run.run_id;
    state := open_run.state::text;
    RETURN NEXT;
  END LOOP;
  IF found_rows > p_most THEN
    UPDATE public.threads t SET deleted_at = clock_timestamp()
    WHERE t.user_id = p_user AND t.thread_id = p_thread;
  ELSE
    PERFORM tenant.leave_queues(p_user, p_thread);
    DELETE FROM public.threads t WHERE t.user_id = p_user AND t.thread_id = p_thread;
    PERFORM tenant.call_up(p_user);
  END IF;
  IF NOT any_open THEN
    run_id := NULL;
    state := NULL;
    RETURN NEXT;
  END IF;
END $$;

-- How many rows hang on a thread, counted up to a bound in each table.
CREATE OR REPLACE FUNCTION tenant.count_thread_rows(
  p_user uuid, p_thread uuid, p_bound int
) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT
    (SELECT count(*) FROM (
      SELECT FROM public.runs r JOIN public.run_events e USING (user_id, run_id)
      WHERE r.user_id = p_user AND r.thread_id = p_thread LIMIT p_bound
    ) AS e)
    + (SELECT count(*) FROM (
      SELECT FROM public.checkpoints c
      WHERE c.user_id = p_user AND c.thread_id = p_thread LIMIT p_bound
    ) AS c)
    + (SELECT count(*) FROM (
      SELECT FROM public.checkpoint_blobs b
      WHERE b.user_id = p_user AND b.thread_id = p_thread LIMIT p_bound
    ) AS b)
    + (SELECT count(*) FROM (
      SELECT FROM public.checkpoint_writes w
      WHERE w.user_id = p_user AND w.thread_id = p_thread LIMIT p_bound
    ) AS w)
    + (SELECT count(*) FROM (
      SELECT FROM public.effects f
      WHERE f.user_id = p_user AND f.thread_id = p_thread LIMIT p_bound
    ) AS f)
    + (SELECT count(*) FROM (
      SELECT FROM public.approvals a
      WHERE a.user_id = p_user AND a.thread_id = p_thread LIMIT p_bound
    ) AS a)
$$;

-- Deletes up to p_limit rows of a thread that was marked as deleted; done once nothing of it is
-- left. Its own transaction.
CREATE OR REPLACE FUNCTION tenant.delete_thread_rows(
  p_user uuid, p_thread uuid, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  room int := p_limit;
  rows int;
BEGIN
  dropped := 0;
  done := true;
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NOT NULL
  FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM 1 FROM public.runs r
  WHERE r.user_id = p_user AND r.thread_id = p_thread
  ORDER BY r.run_id
  FOR UPDATE;
  DELETE FROM public.run_events d USING (
    SELECT e.run_id, e.seq FROM public.runs r JOIN public.run_events e USING (user_id, run_id)
    WHERE r.user_id = p_user AND r.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.run_id = o.run_id AND d.seq = o.seq;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  DELETE FROM public.checkpoint_writes d USING (
    SELECT w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx FROM public.checkpoint_writes w
    WHERE w.user_id = p_user AND w.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.thread_id = p_thread AND d.checkpoint_ns = o.checkpoint_ns
    AND d.checkpoint_id = o.checkpoint_id AND d.task_id = o.task_id AND d.idx = o.idx;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  DELETE FROM public.checkpoint_blobs d USING (
    SELECT b.checkpoint_ns, b.channel, b.version FROM public.checkpoint_blobs b
    WHERE b.user_id = p_user AND b.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.thread_id = p_thread AND d.checkpoint_ns = o.checkpoint_ns
    AND d.channel = o.channel AND d.version = o.version;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  DELETE FROM public.checkpoints d USING (
    SELECT c.checkpoint_ns, c.checkpoint_id FROM public.checkpoints c
    WHERE c.user_id = p_user AND c.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.thread_id = p_thread
    AND d.checkpoint_ns = o.checkpoint_ns AND d.checkpoint_id = o.checkpoint_id;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  DELETE FROM public.effects d USING (
    SELECT f.message_id, f.tool_call_id FROM public.effects f
    WHERE f.user_id = p_user AND f.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.thread_id = p_thread
    AND d.message_id = o.message_id AND d.tool_call_id = o.tool_call_id;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  DELETE FROM public.approvals d USING (
    SELECT a.approval_id FROM public.approvals a
    WHERE a.user_id = p_user AND a.thread_id = p_thread LIMIT room
  ) AS o
  WHERE d.user_id = p_user AND d.approval_id = o.approval_id;
  GET DIAGNOSTICS rows = ROW_COUNT;
  room := room - rows;
  dropped := p_limit - room;
  IF room <= 0 THEN
    done := false;
    RETURN;
  END IF;
  PERFORM tenant.leave_queues(p_user, p_thread);
  DELETE FROM public.threads t WHERE t.user_id = p_user AND t.thread_id = p_thread;
  dropped := dropped + 1;
END $$;
