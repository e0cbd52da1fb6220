-- What was asked, decided, refused and done, on record; behind the tenant door. Facts stand in `audit`,
-- under a reference instead of a person's id; what a person wrote, and the names of servers and tools
-- of their own, in `audit_texts` alone. Without the reference's row the facts name nobody any more.

-- The reference of the transaction's user; null while nothing of theirs is on record.
CREATE OR REPLACE FUNCTION tenant.own_reference() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT r.reference FROM public.audit_references r WHERE r.user_id = (SELECT tenant.user_id())
$$;

-- A person's reference, made where there is none. The caller has bound the user, or may see all.
CREATE OR REPLACE FUNCTION tenant.reference_of(p_user uuid) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
  found_reference uuid;
BEGIN
  SELECT r.reference INTO found_reference FROM public.audit_references r WHERE r.user_id = p_user;
  IF found_reference IS NULL THEN
    -- Before the reference, as whoever erases them does; the foreign key would come after it.
    PERFORM 1 FROM public.users u WHERE u.user_id = p_user FOR KEY SHARE;
    INSERT INTO public.audit_references (user_id) VALUES (p_user) ON CONFLICT (user_id) DO NOTHING;
    SELECT r.reference INTO STRICT found_reference
    FROM public.audit_references r WHERE r.user_id = p_user;
  END IF;
  RETURN found_reference;
END $$;

-- A hash as it stands on record. Without the salt, which goes with the reference's row, nobody finds out
-- any more what was hashed, however easily it is guessed.
CREATE OR REPLACE FUNCTION tenant.salted(p_user uuid, p_sha256 bytea) RETURNS bytea
LANGUAGE sql STABLE AS $$
  SELECT sha256(r.salt || p_sha256) FROM public.audit_references r WHERE r.user_id = p_user
$$;

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
  -- Before the row that bears it: the policy, and the salt, look at what was there then.
  whose uuid := tenant.reference_of(p_user);
  row_id bigint;
BEGIN
  INSERT INTO public.audit AS a (
    reference, actor, action, thread_id, run_id, approval_id, tool_call_id, server, tool, decision, why,
    arguments_sha256, policy_version, expires_at
  )
  VALUES (
    whose, p_actor, p_action, p_thread, p_run, p_approval, p_call,
    CASE WHEN NOT p_own THEN p_server END, CASE WHEN NOT p_own THEN p_tool END, p_decision, p_why,
    tenant.salted(p_user, p_arguments_sha256), p_policy_version, p_expires_at
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

-- The reference of somebody who is there; null of everybody else. Of who is being deleted, the one that is
-- left: were it made anew by each look, their last row could not go.
CREATE OR REPLACE FUNCTION tenant.known_reference_of(p_user uuid) RETURNS uuid
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM public.users u WHERE u.user_id = p_user) THEN
    RETURN NULL;
  ELSIF EXISTS (
    SELECT FROM public.erasures e WHERE e.subject = p_user AND e.step IN ('delete', 'verify')
  ) THEN
    RETURN (SELECT r.reference FROM public.audit_references r WHERE r.user_id = p_user);
  END IF;
  RETURN tenant.reference_of(p_user);
EXCEPTION WHEN foreign_key_violation THEN
  RETURN NULL;  -- their last row went at this very moment
END $$;

-- Somebody acts as an operator, on whom is named: refused to who is suspended, being erased or gone.
-- Makes the references of both in one order, before the caller holds what comes later in the order
-- of locks.
CREATE OR REPLACE FUNCTION tenant.begin_act(p_by uuid, p_user uuid DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF p_by IS NOT NULL AND NOT EXISTS (
    SELECT FROM public.users u WHERE u.user_id = p_by AND u.state = 'active'
  ) THEN
    RAISE EXCEPTION 'this user cannot act' USING ERRCODE = 'ST003';
  END IF;
  PERFORM tenant.known_reference_of(least(p_by, p_user));
  PERFORM tenant.known_reference_of(greatest(p_by, p_user));
END $$;

-- Puts on record what an operator did, or somebody who is none wanted to do; for the dispatch role. To
-- whom (`p_user`), or to what (`p_object`), and by whom: a person, or an account of the system. Looks
-- and refusals (`p_once`) once an hour for each of them, so that they do not fill the record.
CREATE OR REPLACE FUNCTION tenant.audit_act(
  p_by uuid, p_account text, p_action text, p_route text,
  p_user uuid DEFAULT NULL, p_object text DEFAULT NULL, p_why text DEFAULT NULL,
  p_once boolean DEFAULT false
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  by_whom uuid := tenant.known_reference_of(p_by);
  whom uuid := tenant.known_reference_of(p_user);
BEGIN
  IF p_once AND EXISTS (
    SELECT FROM public.audit a
    -- As the index has it.
    WHERE coalesce(a.by_reference::text, a.account) = coalesce(by_whom::text, p_account)
      AND a.action = p_action AND a.at > clock_timestamp() - interval '1 hour'
      AND a.route = p_route
      AND (a.reference, a.object) IS NOT DISTINCT FROM (whom, p_object)
  ) THEN
    RETURN;
  END IF;
  INSERT INTO public.audit (
    reference, by_reference, account, actor, action, route, object, why
  )
  VALUES (
    whom, by_whom, p_account, CASE WHEN p_action = 'refused' THEN 'person' ELSE 'operator' END,
    p_action, p_route, p_object, p_why
  );
END $$;

-- An operator looks: at somebody, at something, or at all. Its own transaction.
CREATE OR REPLACE FUNCTION dispatch.note_look(
  p_user uuid, p_object text, p_by uuid, p_account text, p_route text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_act(p_by, p_user);
  PERFORM tenant.audit_act(p_by, p_account, 'looked', p_route, p_user, p_object, NULL, true);
END $$;

-- Somebody who is no operator wanted to act as one: it is on their own record too.
CREATE OR REPLACE FUNCTION dispatch.note_refusal(p_by uuid, p_account text, p_route text)
RETURNS void
LANGUAGE sql AS $$
  SELECT tenant.audit_act(
    p_by, p_account, 'refused', p_route, p_by, NULL, 'not_an_operator', true
  )
$$;

-- An operator did what has no function of its own here.
CREATE OR REPLACE FUNCTION dispatch.note_deed(
  p_action text, p_object text, p_by uuid, p_account text, p_route text
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_act(p_by);
  PERFORM tenant.audit_act(p_by, p_account, p_action, p_route, NULL, p_object);
END $$;

-- Refuses what nobody has the right to anyway, to those who need no right.
CREATE OR REPLACE FUNCTION tenant.keep_record() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'what is on record stays as it is' USING ERRCODE = 'ST010';
END $$;

-- Nothing leaves the record before the 90th day, whatever the settings say. What people wrote goes
-- with them, too.
CREATE OR REPLACE FUNCTION tenant.keep_texts() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF OLD.at > clock_timestamp() - interval '90 days' AND NOT EXISTS (
    SELECT FROM public.users u WHERE u.user_id = OLD.user_id AND u.state = 'erasing'
  ) THEN
    RAISE EXCEPTION 'what is on record stays as it is' USING ERRCODE = 'ST010';
  END IF;
  RETURN OLD;
END $$;

CREATE OR REPLACE TRIGGER keep_record BEFORE UPDATE OR TRUNCATE ON public.audit
FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
ALTER TABLE public.audit ENABLE ALWAYS TRIGGER keep_record;

CREATE OR REPLACE TRIGGER keep_recent BEFORE DELETE ON public.audit FOR EACH ROW
WHEN (OLD.at > clock_timestamp() - interval '90 days')
EXECUTE FUNCTION tenant.keep_record();
ALTER TABLE public.audit ENABLE ALWAYS TRIGGER keep_recent;

CREATE OR REPLACE TRIGGER keep_record BEFORE UPDATE OR TRUNCATE ON public.audit_texts
FOR EACH STATEMENT EXECUTE FUNCTION tenant.keep_record();
ALTER TABLE public.audit_texts ENABLE ALWAYS TRIGGER keep_record;

CREATE OR REPLACE TRIGGER keep_recent BEFORE DELETE ON public.audit_texts
FOR EACH ROW EXECUTE FUNCTION tenant.keep_texts();
ALTER TABLE public.audit_texts ENABLE ALWAYS TRIGGER keep_recent;
