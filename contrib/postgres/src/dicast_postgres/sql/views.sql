-- Views of version 1, for psql and other programs. A line is decoded as in "The format of the ledger".

-- A payload with its texts in the places of the blanks. *contents* is [session_id, turn_id, subject_id, text, ...]; without it the blanks stay,
-- and a record has a member "digest".
CREATE FUNCTION restored(kind text, payload text, digest text, places json, contents json) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN contents IS NULL AND kind IN ('record.completed', 'record.failed') THEN '{"digest":"' || digest || '",' || substr(payload, 2)
        WHEN contents IS NULL THEN payload
        ELSE left(payload, (places->>0)::integer) || (
            SELECT string_agg((contents->(2 + n)::integer)::text || substr(payload, place + blank + 1,
                coalesce((places->>n::integer)::integer, length(payload)) - place - blank), '' ORDER BY n)
            FROM (SELECT value::integer AS place, n, CASE substr(payload, value::integer + 1, 1) WHEN 'n' THEN 4 ELSE 2 END AS blank
                FROM json_array_elements_text(places) WITH ORDINALITY AS item (value, n)) AS blanks) END
$$;

CREATE VIEW lines AS
    SELECT blocks.first, blocks.run_id, item.place, item.line, item.line->>0 AS kind, makers.line::json AS maker,
        CASE WHEN item.line->>0 = '4' THEN item.line->-1 ELSE '[]' END AS traces,
        CASE item.line->>0 WHEN '0' THEN 1 WHEN '2' THEN json_array_length(makers.line::json->3)
            WHEN '4' THEN json_array_length(makers.line::json->3) + json_array_length(item.line->-1) ELSE 0 END AS events
    FROM blocks
        CROSS JOIN LATERAL json_array_elements(blocks.body::json) WITH ORDINALITY AS item (line, place)
        LEFT JOIN makers ON item.line->>0 IN ('2', '4') AND makers.name = item.line->>1;

CREATE VIEW events AS
    WITH numbered AS (
        SELECT *, first + sum(events) OVER (PARTITION BY first ORDER BY place) - events AS number FROM lines)
    SELECT number::bigint AS seq, line->>1 AS id, line->>2 AS type, line->>3 AS time, line->>4 AS run_id, line->>5 AS session_id,
        line->>6 AS turn_id, line->>7 AS subject_kind, line->>8 AS subject_id, line->>9 AS sensitivity,
        CASE WHEN json_array_length(line) = 11 THEN (line->10)::text
            WHEN json_typeof(line->12) = 'array' THEN restored(line->>2, (line->10)::text, line->>11, line->12,
                (SELECT body::json FROM texts WHERE digest = decode(line->>11, 'hex')))
            ELSE left((line->10)::text, (line->>12)::integer)
            || coalesce((SELECT body FROM texts WHERE digest = decode(line->>11, 'hex')), 'null')
            || substr((line->10)::text, (line->>12)::integer + 5) END AS payload
    FROM numbered WHERE kind = '0'
    UNION ALL
    SELECT (number + part.place - 1 + CASE part.place WHEN 1 THEN 0 ELSE json_array_length(traces) END)::bigint,
        line->>(3 + 2 * part.place)::integer, part.value->>0, line->>(4 + 2 * part.place)::integer, maker->>1, line->>3, line->>4,
        maker->>2, line->>2, part.value->>1,
        (SELECT string_agg(CASE WHEN json_typeof(piece) = 'string' THEN piece#>>'{}' WHEN (piece#>>'{}')::integer > 0
                THEN (line->(piece#>>'{}')::integer)::text
                ELSE coalesce((SELECT body FROM texts WHERE digest = decode(line->>(-(piece#>>'{}')::integer), 'hex')), 'null') END,
                '' ORDER BY n) FROM json_array_elements(part.value->2) WITH ORDINALITY AS pieces (piece, n))
    FROM numbered CROSS JOIN LATERAL json_array_elements(maker->3) WITH ORDINALITY AS part (value, place) WHERE kind IN ('2', '4')
    UNION ALL
    SELECT (number + trace.place)::bigint, CASE length(trace.value->>0) WHEN 4 THEN left(traces->0->>0, 22) ELSE '' END || (trace.value->>0),
        trace.value->>1, trace.value->>2, maker->>1, line->>3,
        CASE json_typeof(trace.value->3) WHEN 'number' THEN line->>4 ELSE trace.value->>3 END, NULL, NULL, 'user_controlled',
        CASE json_array_length(trace.value) WHEN 5 THEN (trace.value->4)::text ELSE restored(trace.value->>1, (trace.value->4)::text,
            trace.value->>5, trace.value->6, (SELECT body::json FROM texts WHERE digest = decode(trace.value->>5, 'hex'))) END
    FROM numbered CROSS JOIN LATERAL json_array_elements(traces) WITH ORDINALITY AS trace (value, place) WHERE kind = '4';

CREATE VIEW verdicts AS
    SELECT seq, time, run_id, session_id, subject_kind, subject_id, verdict->>'eval_id' AS eval_id, verdict->>'judge' AS judge,
        (verdict->>'score')::double precision AS score, (verdict->>'raw')::double precision AS raw,
        (verdict->>'confidence')::double precision AS confidence, verdict->>'tier' AS tier, verdict->>'basis' AS basis,
        verdict->>'judge_kind' AS judge_kind, verdict->>'judge_model' AS judge_model, verdict->>'rubric_id' AS rubric_id,
        verdict->>'rubric_version' AS rubric_version, verdict->>'fingerprint' AS fingerprint,
        (verdict->>'judge_cost_usd')::numeric AS judge_cost_usd, (verdict->>'judge_latency_ms')::bigint AS judge_latency_ms
    FROM (SELECT *, payload::json AS verdict FROM events WHERE type = 'eval.completed') AS completed;
