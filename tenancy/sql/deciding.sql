-- Taking a person's decisions on what a run asks, behind the tenant door. Locks come in the order of
-- `runs.sql`; the run is held, so that of two decisions at once the second finds what the first has
-- left.

-- Takes a person's decisions on what a run asks, all of them or none; the run goes on with the last
-- that is open. `refused` says why none was taken, and `approval_id` because of which:
--   unknown  there is no such question of this run
--   closed   it was decided, or taken back
--   expired  nobody decided in time
--   invalid  it cannot be answered like that
--   changed  what the person saw is not what is asked
-- p_resume is what to keep of how the run is to be streamed from now on. With an idempotency key that
-- was used before, nothing happens again: `is_new` is false.
CREATE OR REPLACE FUNCTION tenant.decide_approvals(
  p_user uuid, p_run uuid, p_decisions jsonb, p_resume jsonb,
  p_candidate uuid, p_route text, p_key text, p_fingerprint bytea
) RETURNS TABLE (
  refused text, approval_id uuid, run_id uuid, is_new boolean, resumed_at timestamptz, last_seq int
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  given record;
  stands public.approvals;
  run record;
  moment timestamptz;
BEGIN
  PERFORM tenant.begin_write(p_user);
  is_new := true;
  IF p_key IS NOT NULL THEN
    -- The run is no candidate of its own: whoever comes second must not find the key to be theirs.
    run_id := tenant.take_idempotency_key(p_user, p_route, p_key, p_fingerprint, p_candidate);
    IF run_id <> p_candidate THEN
      is_new := false;
      RETURN NEXT;
      RETURN;
    END IF;
    UPDATE public.idempotency_keys k SET resource_id = p_run
    WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
  END IF;
  run_id := p_run;
  PERFORM 1 FROM public.threads t JOIN public.runs r USING (user_id, thread_id)
  WHERE r.user_id = p_user AND r.run_id = p_run AND t.deleted_at IS NULL
  FOR NO KEY UPDATE OF t;
  SELECT r.thread_id, r.state INTO run
  FROM public.runs r JOIN public.threads t USING (user_id, thread_id)
  WHERE r.user_id = p_user AND r.run_id = p_run AND t.deleted_at IS NULL
  FOR NO KEY UPDATE OF r;
  moment := clock_timestamp();
  FOR given IN
    SELECT d.* FROM jsonb_to_recordset(p_decisions) AS d (
      approval_id uuid, decision text, arguments_sha256 text
    )
    ORDER BY d.approval_id
  LOOP
    approval_id := given.approval_id;
    SELECT a.* INTO stands FROM public.approvals a
    WHERE a.user_id = p_user AND a.approval_id = given.approval_id AND a.run_id = p_run
      AND run.thread_id IS NOT NULL
    FOR NO KEY UPDATE;
    refused := CASE
      WHEN stands.approval_id IS NULL THEN 'unknown'
      WHEN stands.state = 'expired' THEN 'expired'
      WHEN stands.state <> 'open' OR run.state <> 'waiting' THEN 'closed'
      WHEN stands.expires_at <= moment THEN 'expired'
      WHEN given.decision = ANY (stands.decisions) IS NOT TRUE THEN 'invalid'
      WHEN coalesce(
        decode(given.arguments_sha256, 'hex') <> stands.arguments_sha256,
        given.decision IN ('approve', 'edit', 'repeat')
      ) THEN 'changed'
    END;
    IF refused IS NOT NULL THEN
      IF refused <> 'unknown' THEN
        PERFORM tenant.record_refusal(stands, refused, given.decision);
      END IF;
      DELETE FROM public.idempotency_keys k
      WHERE k.user_id = p_user AND k.route = p_route AND k.key = p_key;
      RETURN NEXT;
      RETURN;
    END IF;
  END LOOP;
  approval_id := NULL;
  FOR stands IN
    UPDATE public.approvals a
    SET state = 'decided', decision = d.decision, decided_arguments = d.arguments,
        decided_sha256 = decode(d.decided_sha256, 'hex'), reason = d.reason, replies = d.replies,
        -- What is asked at the first use alone is open from then on; else only as the person says.
        for_thread = a.subject IS NOT NULL AND d.decision = 'approve' AND (
          d.scope IS NOT DISTINCT FROM 'thread'
          OR NOT coalesce((a.asked ->> 'may_open_thread')::boolean, false)
        ),
        decided_at = moment
    FROM jsonb_to_recordset(p_decisions) AS d (
      approval_id uuid, decision text, arguments jsonb, decided_sha256 text, reason text,
      replies jsonb, scope text
    )
    WHERE a.user_id = p_user AND a.approval_id = d.approval_id
    RETURNING a.*
  LOOP
    PERFORM tenant.audit_approval('person', 'decided', stands);
  END LOOP;
  resumed_at := tenant.go_on(p_user, p_run, p_resume);
  UPDATE public.threads t SET updated_at = moment
  WHERE t.user_id = p_user AND t.thread_id = run.thread_id;
  SELECT coalesce(max(e.seq), 0) INTO last_seq
  FROM public.run_events e WHERE e.user_id = p_user AND e.run_id = p_run;
  RETURN NEXT;
END $$;

-- Puts on record that a decision was refused before it came to the question's row.
CREATE OR REPLACE FUNCTION tenant.refuse_decision(
  p_user uuid, p_approval uuid, p_decision text, p_why text
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  stands public.approvals;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.runs r JOIN public.approvals a USING (user_id, run_id)
  WHERE a.user_id = p_user AND a.approval_id = p_approval
  FOR NO KEY UPDATE OF r;
  SELECT a.* INTO stands FROM public.approvals a
  WHERE a.user_id = p_user AND a.approval_id = p_approval;
  IF FOUND THEN
    PERFORM tenant.record_refusal(stands, p_why, p_decision);
  END IF;
END $$;

-- Puts on record that a decision was refused: a hundred times of one question, since a record is kept
-- for good and to ask again costs nothing. The caller holds the run.
CREATE OR REPLACE FUNCTION tenant.record_refusal(
  p_approval public.approvals, p_why text, p_decision text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.approvals a SET refusals = a.refusals + 1
  WHERE a.user_id = p_approval.user_id AND a.approval_id = p_approval.approval_id
    AND a.refusals < 100;
  IF FOUND THEN
    PERFORM tenant.audit_approval('person', 'refused', p_approval, p_why, p_decision);
  END IF;
END $$;
