-- Calls that were begun and nobody knows the end of: what their person says of them, and what their
-- server says after all; behind the tenant door. Locks come in the order of `effects.sql`, and a run
-- is held before its questions.

-- What stands of a call that was in doubt, once its person has answered p_doubt: that it happened, or
-- that it is to be left out, becomes its end; to repeat it is for `begin_effect`. An outcome that has
-- come meanwhile goes before.
CREATE OR REPLACE FUNCTION tenant.settle_doubt(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text, p_doubt uuid
) RETURNS TABLE (
  server text, tool text, arguments_sha256 bytea, state text, result jsonb, sent int,
  started_at timestamptz
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  word public.approvals;
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread FOR KEY SHARE;
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread);
  SELECT a.* INTO word FROM public.approvals a
  WHERE a.user_id = p_user AND a.approval_id = p_doubt AND a.run_id = p_run
    AND a.message_id = p_message AND a.tool_call_id = p_call AND a.kind = 'in_doubt'
    AND a.decision IN ('happened', 'leave_out');
  IF FOUND THEN
    UPDATE public.effects e
    SET state = CASE word.decision WHEN 'happened' THEN 'done' ELSE 'failed' END,
        result = jsonb_build_object('decided', word.decision, 'reason', word.reason),
        ended_at = clock_timestamp()
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call AND e.state = 'started';
    IF FOUND THEN
      PERFORM tenant.audit_approval('service', 'settled', word);
    END IF;
  END IF;
  -- Also of a call that was put before the person and had not been begun, their word holds.
  IF word.approval_id IS NOT NULL AND NOT EXISTS (
    SELECT FROM public.effects e
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call
  ) THEN
    RETURN QUERY
    SELECT word.server, word.tool, word.arguments_sha256, 'failed',
      jsonb_build_object('decided', word.decision, 'reason', word.reason), NULL::int,
      NULL::timestamptz;
    RETURN;
  END IF;
  RETURN QUERY
  SELECT e.server, e.tool, e.arguments_sha256, e.state, e.result, e.sent, e.started_at
  FROM public.effects e
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call;
END $$;

-- Records what a server has answered after its call's time was over, or its run had become another
-- worker's: what is true of the world is true without the run's fence. The call must have been sent
-- under this key, and it is the end of it while it was sent under this fence last (a repeat that its
-- person wants is sent under another), and nobody has said what to make of it; else it stands beside
-- that, the first such answer for good.
-- Says whether it was anything's (`recorded`), and whether the call's run goes on with it.
CREATE OR REPLACE FUNCTION tenant.record_late_outcome(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text,
  p_key uuid, p_state text, p_result jsonb, OUT recorded boolean, OUT resumed boolean
)
LANGUAGE plpgsql AS $$
DECLARE
  effect public.effects;
BEGIN
  resumed := false;
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread FOR KEY SHARE;
  PERFORM 1 FROM public.runs r WHERE r.user_id = p_user AND r.run_id = p_run FOR NO KEY UPDATE;
  UPDATE public.effects e
  SET state = p_state, result = p_result, ended_at = clock_timestamp(), late_at = clock_timestamp()
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call AND e.key = p_key AND e.fence = p_fence AND e.state = 'started'
  RETURNING e.* INTO effect;
  IF FOUND THEN
    resumed := tenant.close_answered_doubts(p_user, p_run);
  ELSE
    UPDATE public.effects e SET late_result = p_result, late_at = clock_timestamp()
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call AND e.key = p_key AND e.late_at IS NULL
    RETURNING e.* INTO effect;
  END IF;
  recorded := FOUND;
  IF recorded THEN
    PERFORM tenant.audit(
      p_user, 'service', 'late_outcome', p_thread, p_run, p_call, effect.server, effect.tool,
      coalesce(
        (SELECT c.url IS NOT NULL FROM public.connections c
         WHERE c.user_id = p_user AND c.server = effect.server),
        effect.grant_version IS NOT NULL
      ),
      NULL, NULL, p_state, effect.arguments_sha256
    );
  END IF;
END $$;

-- Takes back what a run asks about calls of which it is known by now what came of them; says whether
-- it goes on. The caller holds the run.
CREATE OR REPLACE FUNCTION tenant.close_answered_doubts(p_user uuid, p_run uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  closed public.approvals;
  any_closed boolean := false;
BEGIN
  FOR closed IN
    UPDATE public.approvals a SET state = 'superseded', decided_at = clock_timestamp()
    FROM public.effects e
    WHERE a.user_id = p_user AND a.run_id = p_run AND a.kind = 'in_doubt' AND a.state = 'open'
      AND e.user_id = a.user_id AND e.thread_id = a.thread_id AND e.message_id = a.message_id
      AND e.tool_call_id = a.tool_call_id AND e.state IN ('done', 'failed')
    RETURNING a.*
  LOOP
    any_closed := true;
    PERFORM tenant.audit_approval('service', 'superseded', closed, 'late_outcome');
  END LOOP;
  RETURN any_closed AND tenant.go_on(p_user, p_run) IS NOT NULL;
END $$;

-- What a server answered to a call after its time; no row where it did not. The caller has bound the
-- user.
CREATE OR REPLACE FUNCTION tenant.late_outcome(
  p_user uuid, p_thread uuid, p_message text, p_call text
) RETURNS TABLE (late_at timestamptz, late_result jsonb)
LANGUAGE sql STABLE AS $$
  SELECT e.late_at, coalesce(e.late_result, e.result) FROM public.effects e
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call AND e.late_at IS NOT NULL
$$;
