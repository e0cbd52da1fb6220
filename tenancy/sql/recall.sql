-- Finding items of one person's store: by the words in them, and by embeddings where there are any.

-- The word forms under which a text's tokens are found, in English and in German: each token's two
-- stems, without accents. A token that either language takes for a mere filler has none. Stems are
-- of the Latin alphabet; words of other ones are kept as they are.
CREATE OR REPLACE FUNCTION tenant.stems(p_tokens tsvector)
RETURNS TABLE (token text, stems text[])
LANGUAGE sql IMMUTABLE AS $$
  SELECT t.token, array_agg(DISTINCT s.stem)
  FROM unnest(tsvector_to_array(p_tokens)) AS t (token)
  CROSS JOIN LATERAL (
    SELECT ts_lexize('pg_catalog.english_stem', t.token) AS english,
           ts_lexize('pg_catalog.german_stem', t.token) AS german
  ) AS l
  CROSS JOIN LATERAL unnest(l.english || l.german) AS u (form)
  -- Accents go after the stemming, which knows them. Lowering comes after that: where the
  -- database's locale is C, only the base letters have a lower case.
  CROSS JOIN LATERAL (
    SELECT lower(regexp_replace(normalize(u.form, NFKD), U&'[\0300-\036F]', '', 'g')) AS stem
  ) AS s
  WHERE l.english <> '{}' AND l.german <> '{}' AND length(t.token) <= 100 AND s.stem <> ''
  GROUP BY t.token
$$;

-- The words of everything that is text in a value. Of a huge one only the beginning counts.
CREATE OR REPLACE FUNCTION tenant.words_of(p_value jsonb) RETURNS tsvector
LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(array_to_tsvector(array_agg(DISTINCT u.stem)), ''::tsvector)
  FROM tenant.stems(
    CASE WHEN length(p_value::text) <= 300000
      THEN jsonb_to_tsvector('pg_catalog.simple', p_value, '["string"]')
      ELSE to_tsvector('pg_catalog.simple', left(p_value::text, 100000))
    END
  ) AS s
  CROSS JOIN LATERAL unnest(s.stems) AS u (stem)
$$;

-- What is asked for, one row per word: as it is written, and as the beginning of a longer one. A
-- word with a capital letter within a sentence counts double: a name, or a noun in German, says
-- more of what is asked than a verb.
CREATE OR REPLACE FUNCTION tenant.terms_asked(p_query text)
RETURNS TABLE (term bigint, exact tsquery, loose tsquery, weight float8)
LANGUAGE sql IMMUTABLE AS $$
  WITH names AS (
    SELECT to_tsvector('pg_catalog.simple', coalesce(string_agg(m.word[1], ' '), '')) AS words
    FROM regexp_matches(left(p_query, 2000), '(?<=[^.!?\s]\s+)[[:upper:]]\S*', 'g') AS m (word)
  )
  SELECT row_number() OVER (ORDER BY s.token),
         string_agg(q.quoted, '|')::tsquery,
         string_agg(q.quoted || CASE WHEN length(u.stem) >= 4 THEN ':*' ELSE '' END, '|')::tsquery,
         CASE WHEN s.token = ANY (tsvector_to_array((SELECT n.words FROM names n))) THEN 2 ELSE 1 END
  FROM tenant.stems(to_tsvector('pg_catalog.simple', left(p_query, 2000))) AS s
  CROSS JOIN LATERAL unnest(s.stems) AS u (stem)
  CROSS JOIN LATERAL (
    SELECT '''' || replace(replace(u.stem, '\', '\\'), '''', '''''') || '''' AS quoted
  ) AS q
  GROUP BY s.token
  ORDER BY s.token
  LIMIT 64
$$;

-- How well a person's items below a prefix answer a question; those that do not are left out.
--
-- By words: BM25 with each word counted once, k1 = 1.2, b = 0.5. How rare a word is, is asked of
-- the items that are searched: of one person's rows, never of anybody else's. A word that is only
-- the beginning of one that is there counts a third.
-- By embeddings, where one of the question is given: the cosine with those of the same model.
-- Both: each scaled to what there is among these items, the worst 0 and the best 1, and three parts
-- of words to seven of sense. So neither a model's scale nor a language's is in it. An item without
-- an embedding counts by its words alone.
CREATE OR REPLACE FUNCTION tenant.ranked_items(
  p_user uuid, p_prefix text, p_below boolean, p_query text, p_vector real[], p_model text
) RETURNS TABLE (prefix text, key text, score double precision, changed timestamptz)
LANGUAGE sql STABLE AS $$
  WITH items AS MATERIALIZED (
    SELECT s.prefix, s.key, s.updated_at AS changed,
           coalesce(s.words, tenant.words_of(s.value)) AS words,
           CASE WHEN s.embedding_model = p_model
             THEN tenant.similarity(s.embedding, p_vector) END AS alike
    FROM public.store s
    WHERE s.user_id = p_user
      AND (s.prefix = p_prefix OR p_below AND starts_with(s.prefix, p_prefix || '.'))
      AND (s.expires_at IS NULL OR s.expires_at > (SELECT now()))
  ),
  total AS MATERIALIZED (
    SELECT count(*)::float8 AS items, greatest(avg(length(i.words)), 1)::float8 AS length
    FROM items i
  ),
  hits AS (
    SELECT i.prefix, i.key, i.changed, length(i.words) AS length, t.weight, i.words @@ t.exact AS is_exact,
           count(*) OVER (PARTITION BY t.term, i.words @@ t.exact) AS having
    FROM items i JOIN tenant.terms_asked(p_query) t ON i.words @@ t.loose
  ),
  by_words AS (
    SELECT h.prefix, h.key, h.changed,
           sum(
             CASE WHEN h.is_exact THEN 1 ELSE 1 / 3.0 END * h.weight
               * ln(1 + (t.items - h.having + 0.5) / (h.having + 0.5))
           ) * 2.2 / (1 + 1.2 * (0.5 + 0.5 * h.length / t.length)) AS score
    FROM hits h CROSS JOIN total t
    GROUP BY h.prefix, h.key, h.changed, h.length, t.length
  ),
  -- Brought together without a join: whatever the planner knows of one person's rows, it may be
  -- wrong, and a nested loop over ten thousand of them takes seconds.
  both_ways AS MATERIALIZED (
    SELECT p.prefix, p.key, p.changed, max(p.words) AS words, max(p.sense) AS sense
    FROM (
      SELECT w.prefix, w.key, w.changed, w.score, NULL FROM by_words w
      UNION ALL
      SELECT i.prefix, i.key, i.changed, NULL, i.alike FROM items i WHERE i.alike IS NOT NULL
    ) AS p (prefix, key, changed, words, sense)
    GROUP BY p.prefix, p.key, p.changed
  ),
  best AS (
    SELECT max(f.words) AS words, min(f.sense) AS least, max(f.sense) AS most FROM both_ways f
  ),
  scaled AS (
    SELECT f.prefix, f.key, f.changed, f.words AS bare, coalesce(f.words / b.words, 0) AS words,
           CASE WHEN f.sense IS NOT NULL
             THEN coalesce((f.sense - b.least) / nullif(b.most - b.least, 0), 1) END AS sense
    FROM both_ways f CROSS JOIN best b
  )
  SELECT s.prefix, s.key,
         CASE WHEN p_vector IS NULL THEN s.bare
           ELSE 0.3 * s.words + 0.7 * coalesce(s.sense, s.words)
         END::float8,
         s.changed
  FROM scaled s
$$;

-- A person's memories that answer a question best. They bind the user themselves.
CREATE OR REPLACE FUNCTION tenant.recall(
  p_user uuid, p_query text, p_vector real[], p_model text, p_limit int
) RETURNS TABLE (
  memory_id uuid, content text, thread_id uuid, run_id uuid,
  created_at timestamptz, updated_at timestamptz, score double precision
)
LANGUAGE plpgsql AS $$
DECLARE
  keys text[];
  scores float8[];
BEGIN
  PERFORM tenant.begin_read(p_user);
  SELECT array_agg(b.key ORDER BY b.score DESC, b.changed DESC, b.key),
         array_agg(b.score ORDER BY b.score DESC, b.changed DESC, b.key)
  INTO keys, scores
  FROM (
    SELECT r.key, r.score, r.changed
    FROM tenant.ranked_items(
      p_user, tenant.memory_prefix(p_user), false, p_query, p_vector, p_model
    ) r
    WHERE tenant.as_uuid(r.key) IS NOT NULL
    ORDER BY r.score DESC, r.changed DESC, r.key LIMIT p_limit
  ) b;
  RETURN QUERY
    SELECT m.*, scores[array_position(keys, m.memory_id::text)]
    FROM tenant.memories_of(p_user, coalesce(keys, '{}')) m
    ORDER BY array_position(keys, m.memory_id::text);
END $$;

-- Memories without an embedding of this model, the newest first: as many as there is room for.
-- Nothing is known of the model: 4,096 numbers is as long as embeddings get.
CREATE OR REPLACE FUNCTION tenant.memories_to_embed(
  p_user uuid, p_model text, p_limit int, p_defaults jsonb
) RETURNS TABLE (memory_id uuid, content text)
LANGUAGE plpgsql AS $$
DECLARE
  room bigint;
BEGIN
  PERFORM tenant.begin_read(p_user);
  IF NOT EXISTS (
    SELECT FROM public.store s
    WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
      AND s.embedding_model IS DISTINCT FROM p_model
  ) THEN
    RETURN;
  END IF;
  room := (tenant.limits_of(p_user, p_defaults) ->> 'memory_bytes')::bigint
    - tenant.memory_bytes(p_user);
  RETURN QUERY
    SELECT tenant.as_uuid(s.key), s.value ->> 'content'
    FROM public.store s
    WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
      AND s.embedding_model IS DISTINCT FROM p_model
      AND (s.expires_at IS NULL OR s.expires_at > (SELECT now()))
      AND tenant.as_uuid(s.key) IS NOT NULL AND s.value ->> 'content' IS NOT NULL
    ORDER BY s.updated_at DESC, s.key
    LIMIT least(p_limit, greatest(0, coalesce(room / 16384, p_limit)));
END $$;

-- Keeps embeddings that a run has had made, of those memories that still say the same.
CREATE OR REPLACE FUNCTION tenant.keep_embeddings(
  p_user uuid, p_run uuid, p_fence bigint, p_defaults jsonb, p_model text,
  p_memories uuid[], p_contents text[], p_vectors text[]
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tenant.begin_write(p_user);
  PERFORM tenant.begin_growth(p_user);
  UPDATE public.store s
  SET embedding = e.vector::real[], embedding_model = p_model
  FROM unnest(p_memories, p_contents, p_vectors) AS e (memory, content, vector)
  WHERE s.user_id = p_user AND s.prefix = tenant.memory_prefix(p_user)
    AND s.key = e.memory::text AND s.value ->> 'content' = e.content;
  PERFORM tenant.require_memory(p_user, p_defaults);
  PERFORM tenant.hold_fence(p_run, p_fence);
END $$;
