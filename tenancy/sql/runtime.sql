-- How the parts of the service stand that everybody shares. Within an epoch a part only gets worse,
-- and since when is fixed at its first failure; only a new epoch, which begins when its checks were
-- passed, makes it available again. Versions only grow, and what is committed later is later.

CREATE OR REPLACE FUNCTION dispatch.standing_rank(p_status text) RETURNS int
LANGUAGE sql IMMUTABLE AS $$
  SELECT array_position(ARRAY['unavailable', 'degraded', 'available'], p_status)
$$;

-- A part has passed its checks. True where that is news.
CREATE OR REPLACE FUNCTION dispatch.publish_available(p_component text, p_epoch uuid)
RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  was public.components;
BEGIN
  INSERT INTO public.components (component, epoch, status) VALUES (p_component, p_epoch, 'available')
  ON CONFLICT (component) DO NOTHING;
  IF FOUND THEN
    RETURN true;
  END IF;
  SELECT * INTO was FROM public.components c WHERE c.component = p_component FOR NO KEY UPDATE;
  IF was.epoch = p_epoch THEN
    RETURN false;
  END IF;
  UPDATE public.components c
  SET epoch = p_epoch, status = 'available', reason = NULL, occurred_at = NULL,
      version = c.version + (c.status <> 'available')::int
  WHERE c.component = p_component;
  RETURN was.status <> 'available';
END $$;

-- A part does not work, or not as it should, since p_at. With an epoch, a check has found it better
-- than it was, and not well. True where that is news.
CREATE OR REPLACE FUNCTION dispatch.publish_failure(
  p_component text, p_status text, p_reason text, p_at timestamptz, p_epoch uuid
) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO public.components AS c (component, epoch, status, reason, occurred_at)
  VALUES (p_component, coalesce(p_epoch, gen_random_uuid()), p_status, p_reason, p_at)
  ON CONFLICT (component) DO UPDATE
  SET status = EXCLUDED.status, reason = EXCLUDED.reason, version = c.version + 1,
      epoch = coalesce(p_epoch, c.epoch),
      occurred_at = coalesce(c.occurred_at, EXCLUDED.occurred_at)
  WHERE dispatch.standing_rank(EXCLUDED.status) < dispatch.standing_rank(c.status)
    OR p_epoch <> c.epoch AND EXCLUDED.status <> c.status;
  RETURN FOUND;
END $$;

-- A worker that is ready to work says so, as long as its lease lives. True where that is news.
CREATE OR REPLACE FUNCTION dispatch.publish_worker(p_worker uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  UPDATE public.workers w SET ready_at = coalesce(w.ready_at, clock_timestamp())
  WHERE w.worker_id = p_worker AND w.lease_until > (SELECT clock_timestamp());
  RETURN FOUND AND dispatch.publish_available('workers', p_worker);
END $$;

-- Whether there is anybody to do the work; nobody else is left to say that there is none. A worker
-- that drains still works, one that has not passed its checks does not yet, and one that has left
-- cleanly leaves nothing behind but its absence. True where what was found is news.
CREATE OR REPLACE FUNCTION dispatch.look_for_workers() RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  lost timestamptz;
  is_known boolean;
  is_beginning boolean;
  why text;
BEGIN
  IF dispatch.has_worker() THEN
    RETURN false;
  END IF;
  -- Looked at again under the row's lock: one that has begun meanwhile may have said that it is
  -- ready, which is not to be taken back.
  PERFORM 1 FROM public.components c WHERE c.component = 'workers' FOR NO KEY UPDATE;
  is_known := FOUND;
  IF dispatch.has_worker() THEN
    RETURN false;
  END IF;
  SELECT max(w.lease_until) FILTER (WHERE w.lease_until <= clock_timestamp()),
    coalesce(bool_or(w.lease_until > clock_timestamp()), false)
  INTO lost, is_beginning
  FROM public.workers w;
  why := CASE WHEN lost IS NULL THEN 'no_workers' ELSE 'worker_lost' END;
  lost := coalesce(lost, clock_timestamp());
  IF is_known THEN
    RETURN dispatch.publish_failure('workers', 'unavailable', why, lost, NULL);
  END IF;
  IF is_beginning THEN
    RETURN false;  -- The first of all: nothing is known before it has passed its checks.
  END IF;
  -- Nothing is taken back that was said meanwhile; the next look finds it.
  INSERT INTO public.components (component, epoch, status, reason, occurred_at)
  VALUES ('workers', gen_random_uuid(), 'unavailable', why, lost)
  ON CONFLICT (component) DO NOTHING;
  RETURN FOUND;
END $$;

-- Whether one is ready and alive.
CREATE OR REPLACE FUNCTION dispatch.has_worker() RETURNS boolean
LANGUAGE sql VOLATILE AS $$
  SELECT EXISTS (
    SELECT FROM public.workers w
    WHERE w.lease_until > (SELECT clock_timestamp()) AND w.ready_at IS NOT NULL
  )
$$;

-- How a pool stands, as far as is known: one that fails while another has the model is a part less,
-- not the model. With an epoch, a check was just passed by the pool, or by another with its model.
CREATE OR REPLACE FUNCTION dispatch.publish_pool(p_pool text, p_epoch uuid) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  part text := 'model:' || p_pool;
  seen record;
BEGIN
  SELECT p.state, p.failing_since,
    CASE p.reason
      WHEN 'unreachable' THEN 'ollama_unreachable'
      WHEN 'model_missing' THEN 'model_missing'
      ELSE 'model_failing'
    END AS reason,
    EXISTS (
      SELECT FROM public.pools o WHERE o.model = p.model AND o.pool <> p.pool AND o.state = 'open'
    ) AS has_another
  INTO seen
  FROM public.pools p WHERE p.pool = p_pool;
  IF seen.state = 'open' THEN
    -- Before its first check nothing is known of it.
    RETURN p_epoch IS NOT NULL AND dispatch.publish_available(part, p_epoch);
  ELSIF seen.state = 'failing' THEN
    RETURN dispatch.publish_failure(
      part, CASE WHEN seen.has_another THEN 'degraded' ELSE 'unavailable' END,
      seen.reason, coalesce(seen.failing_since, clock_timestamp()), p_epoch
    );
  END IF;
  DELETE FROM public.components c WHERE c.component = part;
  RETURN FOUND;
END $$;

-- A pool was taken out or put back: it, and those that share its model, are told of as they stand
-- now. Put back is what a probe has found well.
CREATE OR REPLACE FUNCTION dispatch.pool_changed() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  epoch uuid := CASE WHEN NEW.state = 'open' AND OLD.state = 'failing' THEN gen_random_uuid() END;
BEGIN
  PERFORM dispatch.publish_pool(
    p.pool, CASE WHEN p.pool = NEW.pool OR p.state = 'failing' THEN epoch END
  )
  FROM public.pools p WHERE p.model IN (NEW.model, OLD.model) ORDER BY p.pool;
  RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER pool_changes AFTER UPDATE OF state ON public.pools
FOR EACH ROW WHEN (NEW.state <> OLD.state) EXECUTE FUNCTION dispatch.pool_changed();

-- Somebody has looked at a pool: one that does not answer is taken out, and one that a worker found
-- well when it began is spoken of from then on. Returns whether what was found is news.
CREATE OR REPLACE FUNCTION dispatch.pool_checked(p_pool text, p_worker uuid, p_failure text)
RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  -- Whoever changes how a pool stands holds its model: what is told of it, and of those that share the
  -- model, is what is so when this is committed.
  PERFORM 1 FROM public.models m JOIN public.pools p USING (model) WHERE p.pool = p_pool
  FOR NO KEY UPDATE OF m;
  UPDATE public.pools p
  SET state = 'failing', reason = p_failure, failing_since = clock_timestamp()
  WHERE p.pool = p_pool AND p.state = 'open' AND p_failure IS NOT NULL;
  RETURN FOUND OR p_failure IS NULL AND dispatch.publish_pool(p_pool, p_worker);
END $$;

-- All parts, as they stand. That the database does, it says itself, by its clock.
CREATE OR REPLACE FUNCTION dispatch.read_components()
RETURNS TABLE (
  component text, status text, reason text, occurred_at timestamptz, version bigint
)
LANGUAGE sql STABLE AS $$
  SELECT 'database', 'available', NULL, NULL::timestamptz,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
  UNION ALL (
    SELECT c.component, c.status, c.reason, c.occurred_at, c.version
    FROM public.components c ORDER BY c.component
  )
$$;
