-- What a person's decisions let be made, behind the tenant door. They are only read: nobody changes
-- one.

-- The decision that opened a thread for calls like one: of this tool, about the same, while the same
-- rules hold and the decision does. Null if there is none.
CREATE OR REPLACE FUNCTION tenant.find_permission(
  p_user uuid, p_thread uuid, p_server text, p_tool text, p_subject text, p_policy_version text
) RETURNS uuid
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_read(p_user);
  RETURN (
    SELECT a.approval_id FROM public.approvals a
    WHERE a.user_id = p_user AND a.thread_id = p_thread AND a.state = 'decided' AND a.for_thread
      AND a.server IS NOT DISTINCT FROM p_server AND a.tool = p_tool AND a.subject = p_subject
      AND a.policy_version = p_policy_version AND a.expires_at > (SELECT clock_timestamp())
    ORDER BY a.created_at DESC LIMIT 1
  );
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

-- In what a call is not the one that a person decided on, as codes. One without a schema is a tool's of
-- the service's own, which changes with the service alone.
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
    CASE WHEN p_given.schema_sha256 <> p_schema_sha256 THEN 'schema' END,
    CASE WHEN p_given.grant_version IS DISTINCT FROM p_grant_version THEN 'connection' END,
    CASE WHEN p_given.expires_at <= clock_timestamp() THEN 'expired' END,
    CASE
      WHEN coalesce(p_given.decided_sha256, p_given.arguments_sha256) IS DISTINCT FROM p_sha256
      THEN 'arguments'
    END
  ], NULL)
$$;
