-- The ledger of tool calls that may change the world, behind the tenant door. Locks are taken in one
-- order: user, thread, run, the person's connection to the server, the call's row. What a person has
-- decided is only read: nobody changes it.

-- Says whether a call may be made now, and commits that it is about to be. `answer` is
--   begun         make it, under this key; where nothing is recorded, the key is null
--   done, failed  it was made before: the result is what came of it
--   in_doubt      it was begun before, nobody knows what came of it, and it may not be repeated
--   other         another call stands in its place
--   stale         the connection, or what the person says of its calls, has changed since it was read
--   disconnected  the person has switched the server off, or taken it away
--   unapproved    its person has to approve it, or did of something else: `changed` says in what
-- The connection's row is held: a change that was committed is seen, one under way waits.
-- p_url is the address of a person's own server, p_version null where nobody's credential is used,
-- p_server null for a tool of the service's own, p_policy_version where nobody has to approve.
-- A call that was begun before is repeated within p_repeat_seconds of its first beginning, for the
-- same account and by what still lets it be made; and once, whenever that is, if that is what the
-- person answers to p_doubt.
CREATE OR REPLACE FUNCTION tenant.begin_effect(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text,
  p_server text, p_url text, p_version bigint, p_tool text, p_arguments_sha256 bytea,
  p_recorded boolean, p_repeat_seconds float8,
  p_approval uuid, p_approved_sha256 bytea, p_policy_version text, p_schema_sha256 bytea,
  p_subject text, p_approval_version bigint, p_doubt uuid,
  OUT answer text, OUT key uuid, OUT result jsonb, OUT changed text[], OUT sent int,
  OUT started_at timestamptz
)
LANGUAGE plpgsql AS $$
DECLARE
  link record;
  grant_now bigint;
  effect record;
  is_begun boolean := false;
  is_open boolean := false;
  word public.approvals;
  missing text[];
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM 1 FROM public.threads t
  WHERE t.user_id = p_user AND t.thread_id = p_thread FOR KEY SHARE;
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread);
  changed := '{}';
  SELECT c.version, c.enabled, c.url, c.approval_version, c.grant_version INTO link
  FROM public.connections c WHERE c.user_id = p_user AND c.server = p_server FOR SHARE;
  answer := CASE
    WHEN link IS NULL AND p_url IS NULL THEN
      CASE WHEN coalesce(p_version, 1) = 1 THEN 'begun' ELSE 'stale' END
    WHEN link IS NULL OR NOT link.enabled OR link.url IS DISTINCT FROM p_url THEN 'disconnected'
    WHEN link.version <> coalesce(p_version, link.version) THEN 'stale'
    ELSE 'begun'
  END;
  IF answer = 'begun' AND p_approval_version <> coalesce(link.approval_version, 0) THEN
    answer := 'stale';
  END IF;
  grant_now := CASE WHEN p_version IS NOT NULL THEN coalesce(link.grant_version, 1) END;
  IF p_recorded THEN
    SELECT e.server, e.tool, e.arguments_sha256, e.state, e.key, e.result, e.started_at, e.sent,
      e.grant_version, e.repeated_for
    INTO effect
    FROM public.effects e
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call
    FOR UPDATE;
    is_begun := FOUND;
  END IF;
  IF is_begun THEN
    sent := effect.sent;
    started_at := effect.started_at;
    IF (effect.server, effect.tool, effect.arguments_sha256)
      <> (p_server, p_tool, p_arguments_sha256)
    THEN
      answer := 'other';
      RETURN;
    ELSIF effect.state IN ('done', 'failed') THEN
      answer := effect.state;
      result := effect.result;
      RETURN;
    ELSIF effect.state = 'started' THEN
      is_open := true;
      SELECT a.* INTO word FROM public.approvals a
      WHERE a.user_id = p_user AND a.approval_id = p_doubt AND a.run_id = p_run
        AND a.message_id = p_message AND a.tool_call_id = p_call AND a.kind = 'in_doubt'
        AND a.decision = 'repeat' AND a.approval_id IS DISTINCT FROM effect.repeated_for;
    END IF;
  END IF;
  -- Whoever has it made again has just decided on this very call.
  IF answer = 'begun' AND word.approval_id IS NULL AND p_policy_version IS NOT NULL THEN
    missing := tenant.missing_approval(
      p_user, p_run, p_thread, p_message, p_call, p_approval, p_server, p_tool, p_arguments_sha256,
      p_approved_sha256, p_policy_version, p_schema_sha256, p_subject, grant_now
    );
  END IF;
  IF is_open THEN
    -- Not asked as if it had not been begun: "it was not made" would be said of it then.
    changed := CASE
      WHEN answer = 'disconnected' THEN '{connection}'
      WHEN word.approval_id IS NOT NULL THEN tenant.changed_since(
        word, p_server, p_tool, p_arguments_sha256, word.policy_version, p_schema_sha256, grant_now
      )
      WHEN effect.grant_version IS DISTINCT FROM grant_now THEN '{connection}'
      WHEN missing = '{}' THEN '{policy}'
      ELSE coalesce(missing, '{}')
    END;
    IF cardinality(changed) > 0 OR word.approval_id IS NULL AND NOT effect.started_at
      > (SELECT clock_timestamp()) - make_interval(secs => p_repeat_seconds)
    THEN
      answer := 'in_doubt';
      PERFORM tenant.audit(
        p_user, 'service', 'in_doubt', p_thread, p_run, p_call, p_server, p_tool,
        p_url IS NOT NULL, p_doubt, NULL, nullif(array_to_string(changed, ','), ''),
        p_arguments_sha256
      );
      RETURN;
    END IF;
  END IF;
  IF answer <> 'begun' THEN
    RETURN;
  END IF;
  IF missing IS NOT NULL THEN
    answer := 'unapproved';
    changed := missing;
    IF p_approval IS NOT NULL THEN
      PERFORM tenant.audit(
        p_user, 'service', 'refused', p_thread, p_run, p_call, p_server, p_tool,
        p_url IS NOT NULL, p_approval, NULL, nullif(array_to_string(changed, ','), ''),
        p_arguments_sha256, p_policy_version
      );
    END IF;
    RETURN;
  END IF;
  IF NOT p_recorded THEN
    RETURN;
  END IF;
  IF is_begun THEN
    UPDATE public.effects e
    SET run_id = p_run, fence = p_fence, connection_version = p_version, grant_version = grant_now,
        state = 'started', sent = e.sent + 1,
        repeated_for = coalesce(word.approval_id, e.repeated_for)
    WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
      AND e.tool_call_id = p_call
    RETURNING e.key, e.sent INTO begin_effect.key, begin_effect.sent;
    IF word.approval_id IS NOT NULL THEN
      PERFORM tenant.audit_approval('service', 'repeated', word);
    END IF;
    RETURN;
  END IF;
  INSERT INTO public.effects AS e (
    user_id, thread_id, message_id, tool_call_id, run_id, fence, server, tool, key,
    arguments_sha256, connection_version, grant_version, state
  )
  VALUES (
    p_user, p_thread, p_message, p_call, p_run, p_fence, p_server, p_tool, gen_random_uuid(),
    p_arguments_sha256, p_version, grant_now, 'started'
  )
  ON CONFLICT (user_id, thread_id, message_id, tool_call_id) DO NOTHING
  RETURNING e.key, e.sent, e.started_at
  INTO begin_effect.key, begin_effect.sent, begin_effect.started_at;
  IF NOT FOUND THEN
    answer := 'in_doubt';
  END IF;
END $$;

-- Null where an approval lets the call be made: its own, or one that opened the thread for such calls.
-- Else what is otherwise than when that was given; nothing, where there is none.
CREATE OR REPLACE FUNCTION tenant.missing_approval(
  p_user uuid, p_run uuid, p_thread uuid, p_message text, p_call text, p_approval uuid,
  p_server text, p_tool text, p_arguments_sha256 bytea, p_approved_sha256 bytea,
  p_policy_version text, p_schema_sha256 bytea, p_subject text, p_grant_version bigint
) RETURNS text[]
LANGUAGE plpgsql STABLE AS $$
DECLARE
  given public.approvals;
  sha256 bytea;
  changed text[];
BEGIN
  SELECT a.* INTO given FROM public.approvals a
  WHERE a.user_id = p_user AND a.approval_id = p_approval AND a.thread_id = p_thread
    AND a.kind = 'call' AND a.decision IN ('approve', 'edit');
  IF NOT FOUND THEN
    RETURN '{}';
  END IF;
  IF (given.run_id, given.message_id, given.tool_call_id) = (p_run, p_message, p_call) THEN
    -- What the message says is what was approved, and it is what is sent.
    sha256 := CASE WHEN p_approved_sha256 = p_arguments_sha256 THEN p_arguments_sha256 END;
  ELSIF given.for_thread AND given.subject = p_subject THEN
    sha256 := coalesce(given.decided_sha256, given.arguments_sha256);
  ELSE
    RETURN '{}';
  END IF;
  changed := tenant.changed_since(
    given, p_server, p_tool, sha256, p_policy_version, p_schema_sha256, p_grant_version
  );
  RETURN CASE WHEN cardinality(changed) > 0 THEN changed END;
END $$;

-- In what a call is not the one that a person decided on, as codes.
CREATE OR REPLACE FUNCTION tenant.changed_since(
  p_given public.approvals, p_server text, p_tool text, p_sha256 bytea, p_policy_version text,
  p_schema_sha256 bytea, p_grant_version bigint
) RETURNS text[]
LANGUAGE sql VOLATILE AS $$
  SELECT array_remove(ARRAY[
    CASE WHEN p_given.policy_version IS DISTINCT FROM p_policy_version THEN 'policy' END,
    CASE
      WHEN (p_given.server, p_given.tool) IS DISTINCT FROM (p_server, p_tool) THEN 'tool'
    END,
    CASE WHEN p_given.schema_sha256 IS DISTINCT FROM p_schema_sha256 THEN 'schema' END,
    CASE WHEN p_given.grant_version IS DISTINCT FROM p_grant_version THEN 'connection' END,
    CASE WHEN p_given.expires_at <= clock_timestamp() THEN 'expired' END,
    CASE
      WHEN coalesce(p_given.decided_sha256, p_given.arguments_sha256) IS DISTINCT FROM p_sha256
      THEN 'arguments'
    END
  ], NULL)
$$;

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

-- Records what came of a call that was begun under this key: `done` or `failed` with a result, or
-- `asking` where it stopped at a question, to be made again. Says whether there was such a call.
-- The commit waits for no disk: what a crash of the database forgets is in doubt, never made twice,
-- and the checkpoint that holds the result takes this to the disk with it.
CREATE OR REPLACE FUNCTION tenant.end_effect(
  p_user uuid, p_run uuid, p_fence bigint, p_thread uuid, p_message text, p_call text,
  p_key uuid, p_state text, p_result jsonb
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.hold_fence(p_run, p_fence, p_thread);
  UPDATE public.effects e
  SET state = p_state, result = p_result,
      ended_at = CASE WHEN p_state <> 'asking' THEN clock_timestamp() END
  WHERE e.user_id = p_user AND e.thread_id = p_thread AND e.message_id = p_message
    AND e.tool_call_id = p_call AND e.key = p_key AND e.state IN ('started', p_state);
  RETURN FOUND;
END $$;

-- What the ledger holds of a call.
CREATE OR REPLACE FUNCTION tenant.find_effect(
  p_user uuid, p_thread uuid, p_message text, p_call text
) RETURNS TABLE (
  server text, tool text, arguments_sha256 bytea, state text, result jsonb, sent int,
  started_at timestamptz
)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM tenant.begin_read(p_user);
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
