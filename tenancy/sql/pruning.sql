-- Old states of threads, behind the tenant door: which of them nobody needs, and how they go.

-- The states of a thread that can go. Kept are those of runs whose last was made since p_before,
-- those of the thread's last turn, what each of these began from, and all that any of them is read
-- from: a channel that is stored as deltas is read through its ancestors, down to one that holds it
-- whole. Of a graph within the graph, those go whose outer state goes; one that outlives its calls
-- keeps what it held at the oldest state that is kept, and since. So whatever is left can be read,
-- gone on from and forked from. The caller has bound the user.
CREATE OR REPLACE FUNCTION tenant.find_prunable(
  p_user uuid, p_thread uuid, p_before timestamptz
) RETURNS TABLE (checkpoint_ns text, checkpoint_id text, goes_with text)
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE state AS MATERIALIZED (
    SELECT c.checkpoint_ns AS ns, c.checkpoint_id AS id, c.parent_checkpoint_id AS parent, c.run_id,
      CASE WHEN c.run_id IS NULL THEN c.created_at
        ELSE max(c.created_at) OVER (PARTITION BY c.run_id) END AS at,
      c.metadata -> 'parents' ->> '' AS root, strpos(c.checkpoint_ns, ':') > 0 AS is_call,
      c.checkpoint -> 'channel_versions' AS versions, c.checkpoint -> 'channel_values' AS inline,
      -- LangGraph's own, unless a client has put a value there.
      CASE jsonb_typeof(c.metadata -> 'counters_since_delta_snapshot') WHEN 'object'
        THEN c.metadata -> 'counters_since_delta_snapshot' END AS deltas
    FROM public.checkpoints c
    WHERE c.user_id = p_user AND c.thread_id = p_thread
  ),
  delta AS MATERIALIZED (
    SELECT DISTINCT s.ns, k.channel FROM state s, jsonb_object_keys(s.deltas) AS k (channel)
  ),
  -- Those that do not hold all of their channels.
  leaning AS MATERIALIZED (
    SELECT s.ns, s.id, s.parent FROM state s
    WHERE s.parent IS NOT NULL AND EXISTS (
      SELECT FROM delta d
      WHERE d.ns = s.ns AND s.versions ? d.channel
        AND coalesce(s.inline -> d.channel, 'null') = 'null'
        AND NOT EXISTS (
          SELECT FROM public.checkpoint_blobs b
          WHERE b.user_id = p_user AND b.thread_id = p_thread AND b.checkpoint_ns = s.ns
            AND b.channel = d.channel AND b.version = s.versions ->> d.channel AND b.type <> 'empty'
        )
    )
  ),
  head AS (SELECT s.id, s.run_id FROM state s WHERE s.ns = '' ORDER BY s.id DESC LIMIT 1),
  wanted AS (
    SELECT s.id, s.parent FROM state s, head h
    WHERE s.ns = '' AND (s.at >= p_before OR s.id = h.id OR s.run_id = h.run_id)
  ),
  kept_root AS (
    SELECT w.id FROM wanted w
    UNION
    SELECT w.parent FROM wanted w WHERE w.parent IS NOT NULL
    UNION
    SELECT l.parent FROM kept_root k JOIN leaning l ON l.ns = '' AND l.id = k.id
  ),
  oldest AS (SELECT min(k.id) AS id FROM kept_root k),
  kept_within AS (
    SELECT s.ns, s.id FROM state s
    WHERE s.ns <> '' AND (
      s.at >= p_before
      OR s.root IS NULL
      OR s.root IN (SELECT k.id FROM kept_root k)
      OR NOT s.is_call AND s.id >= coalesce((
        SELECT max(o.id) FROM state o WHERE o.ns = s.ns AND o.id < (SELECT oldest.id FROM oldest)
      ), '')
    )
    UNION
    SELECT l.ns, l.parent FROM kept_within k JOIN leaning l ON l.ns = k.ns AND l.id = k.id
  )
  SELECT s.ns, s.id, CASE WHEN s.is_call THEN coalesce(s.root, s.id) ELSE s.id END FROM state s
  WHERE CASE WHEN s.ns = '' THEN s.id NOT IN (SELECT k.id FROM kept_root k)
    ELSE (s.ns, s.id) NOT IN (SELECT k.ns, k.id FROM kept_within k) END
$$;

-- Drops up to p_limit rows of what a thread can do without, one state at least, each with its
-- writes and with the values that no other has. The newest go first, each before what a graph within
-- the graph left of it: whatever hangs on one is gone before it, so what is left reads as before
-- after every commit. Nothing of a thread that a run holds or waits
-- for, since that run may be tried again: its time comes when it has ended.
CREATE OR REPLACE FUNCTION tenant.prune_checkpoints(
  p_user uuid, p_thread uuid, p_older_than float8, p_limit int, OUT dropped int, OUT done boolean
) LANGUAGE plpgsql AS $$
DECLARE
  before timestamptz := clock_timestamp() - make_interval(secs => p_older_than);
  rows int;
  gone record;
BEGIN
  PERFORM tenant.begin_write(p_user);
  dropped := 0;
  done := true;
  -- Held against whoever begins a run or changes the state; whoever has it now is waited for by nobody.
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread AND t.deleted_at IS NULL
    AND t.unpruned_since < before
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND OR EXISTS (
    SELECT FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread
      AND r.state IN ('pending', 'running', 'waiting')
  ) THEN
    RETURN;
  END IF;
  WITH prunable AS MATERIALIZED (
    SELECT f.checkpoint_ns AS ns, f.checkpoint_id AS id,
      row_number() OVER (
        ORDER BY f.goes_with DESC, f.checkpoint_ns = '' DESC, f.checkpoint_id DESC
      ) AS turn
    FROM tenant.find_prunable(p_user, p_thread, before) f
  ),
  -- Values that only such states have; each goes with the last of them.
  garbage AS MATERIALIZED (
    SELECT c.checkpoint_ns AS ns, v.key AS channel, v.value AS version, max(p.turn) AS turn
    FROM public.checkpoints c
    CROSS JOIN LATERAL jsonb_each_text(c.checkpoint -> 'channel_versions') AS v
    LEFT JOIN prunable p ON p.ns = c.checkpoint_ns AND p.id = c.checkpoint_id
    WHERE c.user_id = p_user AND c.thread_id = p_thread
    GROUP BY c.checkpoint_ns, v.key, v.value
    HAVING bool_and(p.id IS NOT NULL) AND EXISTS (
      SELECT FROM public.checkpoint_blobs b
      WHERE b.user_id = p_user AND b.thread_id = p_thread AND b.checkpoint_ns = c.checkpoint_ns
        AND b.channel = v.key AND b.version = v.value
    )
  ),
  sized AS (
    SELECT p.ns, p.id, p.turn, 1 + (
      SELECT count(*) FROM public.checkpoint_writes w
      WHERE w.user_id = p_user AND w.thread_id = p_thread
        AND w.checkpoint_ns = p.ns AND w.checkpoint_id = p.id
    ) + (SELECT count(*) FROM garbage g WHERE g.turn = p.turn) AS size
    FROM prunable p WHERE p.turn <= p_limit
  ),
  summed AS (
    SELECT s.*, sum(s.size) OVER (ORDER BY s.turn) AS so_far FROM sized s
  ),
  batch AS MATERIALIZED (
    SELECT s.ns, s.id, s.turn FROM summed s WHERE s.so_far <= p_limit OR s.turn = 1
  )
  SELECT
    (SELECT count(*) FROM prunable) AS states,
    ARRAY(SELECT b.ns FROM batch b ORDER BY b.turn) AS ns,
    ARRAY(SELECT b.id FROM batch b ORDER BY b.turn) AS id,
    ARRAY(SELECT g.ns FROM garbage g JOIN batch b USING (turn) ORDER BY g) AS blob_ns,
    ARRAY(SELECT g.channel FROM garbage g JOIN batch b USING (turn) ORDER BY g) AS blob_channel,
    ARRAY(SELECT g.version FROM garbage g JOIN batch b USING (turn) ORDER BY g) AS blob_version
  INTO STRICT gone;
  DELETE FROM public.checkpoint_writes w USING unnest(gone.ns, gone.id) AS g (ns, id)
  WHERE w.user_id = p_user AND w.thread_id = p_thread
    AND w.checkpoint_ns = g.ns AND w.checkpoint_id = g.id;
  GET DIAGNOSTICS rows = ROW_COUNT;
  dropped := dropped + rows;
  DELETE FROM public.checkpoint_blobs b
  USING unnest(gone.blob_ns, gone.blob_channel, gone.blob_version) AS g (ns, channel, version)
  WHERE b.user_id = p_user AND b.thread_id = p_thread AND b.checkpoint_ns = g.ns
    AND b.channel = g.channel AND b.version = g.version;
  GET DIAGNOSTICS rows = ROW_COUNT;
  dropped := dropped + rows;
  DELETE FROM public.checkpoints c USING unnest(gone.ns, gone.id) AS g (ns, id)
  WHERE c.user_id = p_user AND c.thread_id = p_thread
    AND c.checkpoint_ns = g.ns AND c.checkpoint_id = g.id;
  GET DIAGNOSTICS rows = ROW_COUNT;
  dropped := dropped + rows;
  -- What came of one that is gone begins the thread now.
  UPDATE public.checkpoints c SET parent_checkpoint_id = NULL
  FROM unnest(gone.ns, gone.id) AS g (ns, id)
  WHERE c.user_id = p_user AND c.thread_id = p_thread
    AND c.checkpoint_ns = g.ns AND c.parent_checkpoint_id = g.id;
  done := rows = gone.states;
  IF done THEN
    UPDATE public.threads t SET unpruned_since = (
      SELECT min(c.created_at) FROM public.checkpoints c
      WHERE c.user_id = p_user AND c.thread_id = p_thread AND c.created_at >= before
    )
    WHERE t.user_id = p_user AND t.thread_id = p_thread;
  END IF;
END $$;
