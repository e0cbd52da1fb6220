-- Who has runs that wait to be executed. Kept up to date where runs change, and always last: the
-- queue's row comes after every run's in the order of locks.

-- Has a person's runs looked at by the next claim. The caller has bound the user, or may see all.
CREATE OR REPLACE FUNCTION tenant.call_up(p_user uuid) RETURNS void
LANGUAGE sql AS $$
  INSERT INTO public.run_queues AS q (user_id) VALUES (p_user)
  ON CONFLICT (user_id) DO UPDATE SET claimable = true WHERE NOT q.claimable;
$$;

CREATE OR REPLACE FUNCTION tenant.run_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.call_up(NEW.user_id);
  RETURN NULL;
END $$;

-- At the commit, when the transaction has all its runs: one that waited for the queue first would
-- hold up another's run. A claim sees to the queue by itself. Deletions call up by themselves too:
-- those that a foreign key makes run as the owner, who sees no row.
DROP TRIGGER IF EXISTS run_comes ON public.runs;
CREATE CONSTRAINT TRIGGER run_comes AFTER INSERT ON public.runs
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION tenant.run_changed();

DROP TRIGGER IF EXISTS run_goes ON public.runs;
CREATE CONSTRAINT TRIGGER run_goes AFTER UPDATE OF state ON public.runs
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.state <> 'running' AND NEW.state <> OLD.state)
EXECUTE FUNCTION tenant.run_changed();

-- Somebody who may be served again is next as one who comes back is, where calls of theirs still wait.
CREATE OR REPLACE FUNCTION tenant.user_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM public.model_users u WHERE u.user_id = NEW.user_id ORDER BY u.model
  FOR NO KEY UPDATE;
  UPDATE public.model_users u SET eligible = true, vtime = greatest(u.vtime, m.vnow)
  FROM public.models m
  WHERE u.user_id = NEW.user_id AND m.model = u.model AND EXISTS (
    SELECT 1 FROM public.model_calls c
    WHERE c.user_id = u.user_id AND c.model = u.model AND c.seat IS NULL
  );
  PERFORM tenant.call_up(NEW.user_id);
  RETURN NULL;
END $$;

DROP TRIGGER IF EXISTS user_comes_back ON public.users;
CREATE CONSTRAINT TRIGGER user_comes_back AFTER UPDATE OF state ON public.users
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.state = 'active' AND OLD.state <> 'active')
EXECUTE FUNCTION tenant.user_changed();

-- Takes a thread's runs, or one of them, out of the way of their deletion: calls that wait for a
-- seat leave the queue, those that have one are ended by their worker, or by time. The caller holds
-- the runs.
CREATE OR REPLACE FUNCTION tenant.leave_queues(
  p_user uuid, p_thread uuid, p_run uuid DEFAULT NULL
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  leaving uuid[] := ARRAY(
    SELECT r.run_id FROM public.runs r
    WHERE r.user_id = p_user AND r.thread_id = p_thread AND (p_run IS NULL OR r.run_id = p_run)
  );
BEGIN
  DELETE FROM public.model_calls c
  WHERE c.user_id = p_user AND c.run_id = ANY (leaving) AND c.seat IS NULL;
  UPDATE public.model_calls c SET run_id = NULL
  WHERE c.user_id = p_user AND c.run_id = ANY (leaving);
END $$;
