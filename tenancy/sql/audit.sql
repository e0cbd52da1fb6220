-- What was asked, decided, refused and done, on record for good; behind the tenant door. Facts stand in
-- `audit`; what a person wrote, and the names of servers and tools of their own, in `audit_texts` alone.

-- Puts one thing on record. `p_own`: the server is the person's own, or may be. A reason is what the
-- person wrote. The caller has bound the user for writing.
CREATE OR REPLACE FUNCTION tenant.audit(
  p_user uuid, p_actor text, p_action text, p_thread uuid, p_run uuid, p_call text,
  p_server text, p_tool text, p_own boolean,
  p_approval uuid DEFAULT NULL, p_decision text DEFAULT NULL, p_why text DEFAULT NULL,
  p_arguments_sha256 bytea DEFAULT NULL, p_policy_version text DEFAULT NULL,
  p_expires_at timestamptz DEFAULT NULL, p_reason text DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  row_id bigint;
BEGIN
  INSERT INTO public.audit AS a (
    user_id, actor, action, thread_id, run_id, approval_id, tool_call_id, server, tool, decision, why,
    arguments_sha256, policy_version, expires_at
  )
  VALUES (
    p_user, p_actor, p_action, p_thread, p_run, p_approval, p_call,
    CASE WHEN NOT p_own THEN p_server END, CASE WHEN NOT p_own THEN p_tool END, p_decision, p_why,
    p_arguments_sha256, p_policy_version, p_expires_at
  )
  RETURNING a.audit_id INTO STRICT row_id;
  INSERT INTO public.audit_texts (user_id, audit_id, kind, text)
  SELECT p_user, row_id, said.kind, said.text
  FROM (VALUES
    ('reason', p_reason),
    ('server', CASE WHEN p_own IS NOT FALSE THEN p_server END),
    ('tool', CASE WHEN p_own IS NOT FALSE THEN p_tool END)
  ) AS said (kind, text)
  WHERE said.text IS NOT NULL;
END $$;

-- Puts on record what became of a question to a person; their reason with their decision, once.
CREATE OR REPLACE FUNCTION tenant.audit_approval(
  p_actor text, p_action text, p_approval public.approvals,
  p_why text DEFAULT NULL, p_decision text DEFAULT NULL
) RETURNS void
LANGUAGE sql AS $$
  SELECT tenant.audit(
    p_approval.user_id, p_actor, p_action, p_approval.thread_id, p_approval.run_id,
    p_approval.tool_call_id, p_approval.server, p_approval.tool, p_approval.is_own,
    p_approval.approval_id, coalesce(p_decision, p_approval.decision), p_why,
    coalesce(p_approval.decided_sha256, p_approval.arguments_sha256), p_approval.policy_version,
    p_approval.expires_at, CASE WHEN p_action = 'decided' THEN p_approval.reason END
  )
$$;

-- Refuses what nobody has the right to anyway, to those who need no right.
CREATE OR REPLACE FUNCTION tenant.keep_record() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what is on record stays as it is' USING ERRCODE = 'ST010';
END $$;

CREATE OR REPLACE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON public.audit
FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
ALTER TABLE public.audit ENABLE ALWAYS TRIGGER keep_record;

CREATE OR REPLACE TRIGGER keep_record BEFORE UPDATE OR DELETE OR TRUNCATE ON public.audit_texts
FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
ALTER TABLE public.audit_texts ENABLE ALWAYS TRIGGER keep_record;
