-- What holds for every change of a run's row, made by triggers.

-- Whoever tries it, and through whichever door: a run goes only where `tenancy/run_states.py`
-- lets it, its fence rises with each claim and each giving back and never falls, one whose cancel
-- was accepted ends as cancelled, and the time that it ran is added up.
CREATE OR REPLACE FUNCTION tenant.guard_transition() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    IF NEW.state <> 'pending' OR NEW.fence <> 0 THEN
      RAISE EXCEPTION 'a run begins pending' USING ERRCODE = 'ST007';
    END IF;
    RETURN NEW;
  END IF;
  IF NEW.fence < OLD.fence THEN
    RAISE EXCEPTION 'a fence never falls' USING ERRCODE = 'ST007';
  END IF;
  IF NEW.state = OLD.state THEN
    RETURN NEW;
  END IF;
  IF NOT tenant.may_become(OLD.state, NEW.state)
     OR (NEW.cancel_requested_at IS NOT NULL
         AND NEW.state NOT IN ('pending', 'running', 'cancelled')) THEN
    RAISE EXCEPTION 'a run cannot go from % to %', OLD.state, NEW.state USING ERRCODE = 'ST007';
  END IF;
  IF NEW.fence = OLD.fence
     AND (NEW.state = 'running' OR (OLD.state, NEW.state) = ('running', 'pending')) THEN
    RAISE EXCEPTION 'a run changes hands under a higher fence' USING ERRCODE = 'ST007';
  END IF;
  IF OLD.state = 'running' THEN
    -- A clock may be set back; time that ran is not taken off again.
    NEW.active_seconds := OLD.active_seconds
      + greatest(0, extract(epoch FROM clock_timestamp() - OLD.claimed_at));
  END IF;
  RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER guard_transition
BEFORE INSERT OR UPDATE OF state, fence ON public.runs
FOR EACH ROW EXECUTE FUNCTION tenant.guard_transition();

-- Keeps on record who had a run when, and how that ended.
CREATE OR REPLACE FUNCTION tenant.record_attempt() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.state = 'running' THEN
    INSERT INTO public.run_attempts (user_id, run_id, fence, attempt, worker_id, host, claimed_at)
    SELECT NEW.user_id, NEW.run_id, NEW.fence, NEW.attempt, NEW.worker_id, w.host, NEW.claimed_at
    FROM (SELECT) AS one LEFT JOIN public.workers w ON w.worker_id = NEW.worker_id;
  ELSE
    UPDATE public.run_attempts
    SET ended_at = clock_timestamp(),
        ended_by = CASE
          WHEN NEW.state <> 'pending' THEN NEW.state::text
          WHEN NEW.attempts_spent > OLD.attempts_spent THEN 'lost'
          ELSE 'released'
        END
    WHERE user_id = NEW.user_id AND run_id = NEW.run_id AND fence = OLD.fence;
  END IF;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER record_attempt
AFTER UPDATE OF state ON public.runs
FOR EACH ROW WHEN ((OLD.state = 'running') <> (NEW.state = 'running'))
EXECUTE FUNCTION tenant.record_attempt();

-- Takes back what a run asks its person when it ends without an answer: a cancel, a new message. Nothing
-- is put on record for somebody who is being erased: what was asked goes with them.
CREATE OR REPLACE FUNCTION tenant.take_back_questions() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM public.users u WHERE u.user_id = NEW.user_id AND u.state = 'erasing') THEN
    RETURN NULL;
  END IF;
  PERFORM tenant.supersede_approvals(NEW.user_id, NEW.run_id, coalesce(NEW.cancel_action, 'ended'));
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER take_back_questions
AFTER UPDATE OF state ON public.runs
FOR EACH ROW WHEN (OLD.state = 'waiting' AND NEW.state NOT IN ('waiting', 'pending'))
EXECUTE FUNCTION tenant.take_back_questions();
