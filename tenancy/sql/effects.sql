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
  SELECT c.answer, c.grant_version INTO answer, grant_now
  FROM tenant.connection_of_call(p_user, p_server, p_url, p_version, p_approval_version) c;
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

-- Holds the connection that a call is made by, and says whether it is as its maker has read it:
-- `begun`, `stale` or `disconnected`, as `begin_effect` answers. `grant_version` is the account's by
-- now, null where nobody's is used.
CREATE OR REPLACE FUNCTION tenant.connection_of_call(
  p_user uuid, p_server text, p_url text, p_version bigint, p_approval_version bigint,
  OUT answer text, OUT grant_version bigint
)
LANGUAGE plpgsql AS $$
DECLARE
  link record;
BEGIN
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
  grant_version := CASE WHEN p_version IS NOT NULL THEN coalesce(link.grant_version, 1) END;
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
