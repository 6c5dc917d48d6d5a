-- Functions of version 3. Each change of a ledger is one call of a function, so that no client holds a lock while it is slow or stopped.
-- They are in PL/pgSQL, which keeps the plans of its statements for the session: a function in SQL is planned at each call.
-- Order of locks: the barrier, the lease, chains by run, scopes by key, texts, accounts.

-- The key of an advisory lock: 1 the barrier of numbers, 2 the next chain, 3 the scopes of budgets.
CREATE OR REPLACE FUNCTION lock_key(kind integer) RETURNS bigint LANGUAGE plpgsql STABLE AS
$$ BEGIN RETURN (1684628224::bigint + kind) << 32 | 'numbers'::regclass::oid::bigint; END $$;

-- Take numbers for events that follow one another, and return the first. Numbers are given in the order of calls, not of commits: see
-- newest_number. Numbers between which another client took a number are left out.
CREATE OR REPLACE FUNCTION take_numbers(events bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    lowest bigint;
    highest bigint;
BEGIN
    LOOP
        SELECT min(number), max(number) INTO lowest, highest
            FROM (SELECT nextval('numbers') AS number FROM generate_series(1, events)) AS numbers_of_call;
        EXIT WHEN highest - lowest = events - 1;
    END LOOP;
    RETURN lowest;
END $$;

-- The newest number for readers: every event up to it is committed, or never will be. Writers share the barrier until their end.
CREATE OR REPLACE FUNCTION newest_number() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
BEGIN
    PERFORM pg_advisory_lock(lock_key(1));
    SELECT CASE WHEN is_called THEN last_value ELSE 0 END INTO newest FROM numbers;
    PERFORM pg_advisory_unlock(lock_key(1));
    RETURN newest;
END $$;

-- Begin a change of a client, and return True if it was made before. Refuse an owner whose lease was taken. A lease that is due is renewed.
CREATE OR REPLACE FUNCTION begin_change(client_name text, change_number bigint, lease_run text, lease_token bigint, seconds double precision)
    RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    lease leases;
    moment timestamptz := clock_timestamp();
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock_key(1));
    INSERT INTO changes VALUES (client_name, change_number - 1, NULL, NULL, NULL, moment) ON CONFLICT (client) DO NOTHING;
    SELECT change INTO newest FROM changes WHERE client = client_name FOR UPDATE;
    IF newest >= change_number THEN
        RETURN true;
    END IF;
    IF lease_run IS NOT NULL THEN
        SELECT * INTO lease FROM leases WHERE run_id = lease_run FOR SHARE;
        IF NOT FOUND OR lease.token <> lease_token THEN
            RAISE EXCEPTION 'the lease was taken' USING ERRCODE = 'DC001';
        END IF;
        IF lease.until < moment + make_interval(secs => seconds * 2 / 3) THEN
            UPDATE leases SET until = moment + make_interval(secs => seconds) WHERE run_id = lease_run;
        END IF;
    END IF;
    RETURN false;
END $$;

-- Lock the chains of runs, in one order for all clients. A missing chain is made.
CREATE OR REPLACE FUNCTION lock_chains(runs text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    run text;
BEGIN
    FOR run IN SELECT DISTINCT unnest(runs) COLLATE "C" ORDER BY 1 LOOP
        PERFORM 1 FROM chains WHERE run_id = run AND shard = 0 FOR UPDATE;
        IF NOT FOUND THEN
            PERFORM pg_advisory_xact_lock(lock_key(2));
            INSERT INTO chains SELECT run, 0, coalesce(max(number), 0) + 1, 0, 0, decode(repeat('00', 32), 'hex') FROM chains
                ON CONFLICT (run_id, shard) DO NOTHING;
            PERFORM 1 FROM chains WHERE run_id = run AND shard = 0 FOR UPDATE;
        END IF;
    END LOOP;
END $$;

-- Append lines to the locked chain of a run.
CREATE OR REPLACE FUNCTION add_block(
    run text, first_number bigint, events bigint, kinds text[], lowest bytea, highest bytea, start_time text, end_time text, leaves bytea,
    lines_text text, packed bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    chain chains;
    link bytea;
    all_marks bytea := '';
    size integer := length(leaves) / 32;
BEGIN
    SELECT * INTO chain FROM chains WHERE run_id = run AND shard = 0;
    link := chain.digest;
    FOR place IN 0 .. size - 1 LOOP
        link := sha256(link || substr(leaves, 32 * place + 1, 32));
        all_marks := all_marks || substr(link, 1, 4);
    END LOOP;
    INSERT INTO blocks VALUES (first_number, first_number + events - 1, size, run, 0, kinds, lowest, highest, start_time, end_time,
        chain.digest, link, all_marks, lines_text, packed);
    UPDATE chains SET last = first_number + events - 1, lines = chain.lines + size, digest = link WHERE run_id = run AND shard = 0;
END $$;

CREATE OR REPLACE FUNCTION add_amount(run text, scope_names text[], unit_name text, spent_amount numeric, held_amount numeric)
    RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO accounts (scope, unit, run_id, spent, held)
        SELECT name COLLATE "C", unit_name, run, spent_amount * count(*), held_amount * count(*) FROM unnest(scope_names) AS name
            GROUP BY 1 ORDER BY 1
        ON CONFLICT (scope, unit, run_id) DO UPDATE SET spent = accounts.spent + excluded.spent, held = accounts.held + excluded.held;
END $$;

CREATE OR REPLACE FUNCTION open_reservation(event jsonb, number bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO reservations VALUES (event->>'id', number, event->>'run', ARRAY(SELECT jsonb_array_elements_text(event->'scopes')),
        (event->>'amount')::numeric, event->>'unit', (event->>'until')::timestamptz, (event->>'outlives')::boolean);
END $$;

-- Close open reservations by settled and released amounts, all in one statement, and return their ids. Another event about one of these
-- reservations in the same change does not matter: the first decides.
CREATE OR REPLACE FUNCTION close_reservations(events jsonb) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    ids text[];
BEGIN
    WITH item AS (
        SELECT DISTINCT ON (id) type, id, amount, unit
            FROM jsonb_to_recordset(events) AS event (place bigint, type text, id text, amount numeric, unit text)
            WHERE type IN ('spend.settled', 'spend.released') ORDER BY id, place
    ), closed AS (
        DELETE FROM reservations r USING item
            WHERE r.id = item.id AND (item.type = 'spend.released' OR item.amount IS NULL OR item.unit = r.unit)
            RETURNING r.id, r.run_id, r.scopes, r.unit, r.amount,
                CASE item.type WHEN 'spend.released' THEN 0 ELSE coalesce(item.amount, r.amount) END AS total
    ), counted AS (
        INSERT INTO accounts (scope, unit, run_id, spent, held)
            SELECT scope COLLATE "C", unit, run_id, sum(total), -sum(amount) FROM closed CROSS JOIN unnest(scopes) AS scope
                GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            ON CONFLICT (scope, unit, run_id) DO UPDATE SET spent = accounts.spent + excluded.spent, held = accounts.held + excluded.held
    ) SELECT coalesce(array_agg(id), '{}') INTO ids FROM closed;
    RETURN ids;
END $$;

-- Apply events of amounts: {place, run, type, id, scopes, amount, unit, until, outlives}. The rules are those of ledger/sqlite.
CREATE OR REPLACE FUNCTION record_spending(base bigint, events jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    event jsonb;
    closed record;
    closed_ids text[] := '{}';
    spent_before numeric;
    total numeric;
    total_unit text;
BEGIN
    IF jsonb_array_length(events) = 0 THEN
        RETURN;
    END IF;
    IF NOT events @> '[{"type": "spend.reserved"}]' THEN
        closed_ids := close_reservations(events);
    END IF;
    FOR event IN SELECT value FROM jsonb_array_elements(events) WHERE NOT value->>'id' = ANY (closed_ids) LOOP
        IF event->>'type' = 'spend.reserved' THEN
            PERFORM open_reservation(event, base + (event->>'place')::bigint);
            PERFORM add_amount(event->>'run', ARRAY(SELECT jsonb_array_elements_text(event->'scopes')), event->>'unit', 0,
                (event->>'amount')::numeric);
            CONTINUE;
        END IF;
        -- The amount that counted so far: of an open reservation as held, of a lost one as spent.
        spent_before := 0;
        DELETE FROM reservations WHERE id = event->>'id' RETURNING run_id, scopes, unit, amount, amount AS held INTO closed;
        IF NOT FOUND THEN
            CONTINUE WHEN event->>'type' = 'spend.lost';
            DELETE FROM lost WHERE id = event->>'id' RETURNING run_id, scopes, unit, amount, 0 AS held INTO closed;
            CONTINUE WHEN NOT FOUND;
            spent_before := closed.amount;
        END IF;
        total := CASE WHEN event->>'type' = 'spend.released' THEN 0 ELSE coalesce((event->>'amount')::numeric, closed.amount) END;
        total_unit := CASE WHEN event->>'amount' IS NULL THEN closed.unit ELSE event->>'unit' END;
        IF total_unit = closed.unit OR total = 0 THEN
            PERFORM add_amount(closed.run_id, closed.scopes, closed.unit, total - spent_before, -closed.held);
        ELSE
            PERFORM add_amount(closed.run_id, closed.scopes, closed.unit, -spent_before, -closed.held);
            PERFORM add_amount(closed.run_id, closed.scopes, total_unit, total, 0);
        END IF;
        IF event->>'type' = 'spend.lost' THEN
            INSERT INTO lost VALUES (event->>'id', closed.run_id, closed.scopes, total, total_unit);
        END IF;
    END LOOP;
END $$;

-- Write blocks of a change: {run, events, types, low, high, began, ended, columns}, with their leaves and bodies, and the rows that belong to them.
-- Chains are locked. Return the number of the last event.
CREATE OR REPLACE FUNCTION write_blocks(
    hints jsonb, leaves bytea[], bodies text[], maker_names text[], maker_lines text[], digests bytea[], contents text[], spending jsonb)
    RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    hint jsonb;
    number bigint;
BEGIN
    INSERT INTO makers SELECT * FROM unnest(maker_names, maker_lines) ORDER BY 1 ON CONFLICT DO NOTHING;
    INSERT INTO texts SELECT * FROM unnest(digests, contents) ORDER BY 1 ON CONFLICT DO NOTHING;
    number := take_numbers((SELECT sum((value->>'events')::bigint) FROM jsonb_array_elements(hints))::bigint);
    PERFORM record_spending(number - 1, spending);
    FOR place IN 1 .. jsonb_array_length(hints) LOOP
        hint := hints->(place - 1);
        PERFORM add_block(hint->>'run', number, (hint->>'events')::bigint, ARRAY(SELECT jsonb_array_elements_text(hint->'types')),
            decode(hint->>'low', 'hex'), decode(hint->>'high', 'hex'), hint->>'began', hint->>'ended', leaves[place], bodies[place],
            decode(hint->>'columns', 'base64'));
        number := number + (hint->>'events')::bigint;
    END LOOP;
    RETURN number - 1;
END $$;

CREATE OR REPLACE FUNCTION runs_of(hints jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RETURN ARRAY(SELECT value->>'run' FROM jsonb_array_elements(hints)); END $$;

-- Append blocks. Return the number and the digest after them.
CREATE OR REPLACE FUNCTION append_blocks(
    client_name text, change_number bigint, lease_run text, lease_token bigint, seconds double precision, hints jsonb, leaves bytea[],
    bodies text[], maker_names text[], maker_lines text[], digests bytea[], contents text[], spending jsonb,
    OUT newest bigint, OUT link bytea) LANGUAGE plpgsql AS $$
BEGIN
    IF NOT begin_change(client_name, change_number, lease_run, lease_token, seconds) THEN
        PERFORM lock_chains(runs_of(hints));
        newest := write_blocks(hints, leaves, bodies, maker_names, maker_lines, digests, contents, spending);
        SELECT digest INTO link FROM chains WHERE run_id = hints->-1->>'run' AND shard = 0;
        UPDATE changes SET change = change_number, last = newest, digest = link, answers = NULL, at = clock_timestamp()
            WHERE client = client_name;
        RETURN;
    END IF;
    SELECT last, digest INTO newest, link FROM changes WHERE client = client_name;
END $$;

-- Remove contents, and append the blocks with the event about it. Writers of contents wait meanwhile.
CREATE OR REPLACE FUNCTION erase_texts(
    client_name text, change_number bigint, lease_run text, lease_token bigint, seconds double precision, hints jsonb, leaves bytea[],
    bodies text[], maker_names text[], maker_lines text[], digests bytea[], contents text[], spending jsonb, erased bytea[],
    OUT newest bigint, OUT link bytea) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock_key(1)); -- before the table, as all writers do
    LOCK TABLE texts IN SHARE ROW EXCLUSIVE MODE;
    DELETE FROM texts WHERE digest = ANY (erased);
    SELECT * INTO newest, link FROM append_blocks(client_name, change_number, lease_run, lease_token, seconds, hints, leaves, bodies,
        maker_names, maker_lines, digests, contents, spending);
END $$;

-- Lock the scopes of claims whose escrow is too small, and return them as {unit scope}. This comes before the first account is locked: so no client
-- waits for a scope while it holds an account.
CREATE OR REPLACE FUNCTION lock_scopes(claims jsonb) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    locked text[] := ARRAY(
        SELECT claim.unit || ' ' || (cap->>'scope') COLLATE "C" AS name
            FROM jsonb_to_recordset(claims) AS claim (run text, unit text, amount numeric, caps jsonb)
                CROSS JOIN jsonb_array_elements(claim.caps) AS cap
                LEFT JOIN accounts a ON a.scope = cap->>'scope' AND a.unit = claim.unit AND a.run_id = claim.run
            GROUP BY claim.run, claim.unit, cap, a.escrow, a.escrow_limit
            HAVING a.escrow IS NULL OR a.escrow < sum(claim.amount) OR a.escrow_limit > (cap->>'limit')::numeric ORDER BY 1);
    name text;
BEGIN
    FOREACH name IN ARRAY locked LOOP
        PERFORM lock_scope(name);
    END LOOP;
    RETURN locked;
END $$;

CREATE OR REPLACE FUNCTION lock_scope(name text) RETURNS void LANGUAGE plpgsql AS
$$ BEGIN PERFORM pg_advisory_xact_lock(hashtextextended(name, lock_key(3))); END $$;

-- Decide a claim of the run by its caps: {scope, limit}, in the unit of the claim. Return 0 if it is granted, N if cap N refuses it, and -N if
-- it waits for open reservations under cap N. *locked* are scopes that this transaction has locked.
CREATE OR REPLACE FUNCTION decide(run text, total numeric, unit_name text, caps jsonb, locked text[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    cap record;
    account accounts;
    spent_sum numeric;
    held_sum numeric;
    others numeric;
    waits integer := 0;
    portion numeric;
    enough integer;
BEGIN
    IF total = 0 OR jsonb_array_length(caps) = 0 THEN
        RETURN 0;
    END IF;
    -- The usual case: the escrow of the run is enough for each cap.
    PERFORM 1 FROM jsonb_array_elements(caps) AS item JOIN accounts a ON a.scope = item->>'scope' AND a.unit = unit_name AND a.run_id = run
        WHERE a.escrow >= total AND a.escrow_limit <= (item->>'limit')::numeric ORDER BY a.scope FOR UPDATE OF a;
    GET DIAGNOSTICS enough = ROW_COUNT;
    IF enough = jsonb_array_length(caps) THEN
        UPDATE accounts SET escrow = escrow - total
            WHERE run_id = run AND unit = unit_name AND scope IN (SELECT value->>'scope' FROM jsonb_array_elements(caps));
        RETURN 0;
    END IF;
    INSERT INTO accounts (scope, unit, run_id) SELECT DISTINCT value->>'scope', unit_name, run FROM jsonb_array_elements(caps) ORDER BY 1
        ON CONFLICT DO NOTHING;
    PERFORM 1 FROM accounts WHERE run_id = run AND unit = unit_name AND scope IN (SELECT value->>'scope' FROM jsonb_array_elements(caps))
        ORDER BY scope FOR UPDATE;
    FOR cap IN SELECT value->>'scope' AS scope, (value->>'limit')::numeric AS most, ordinality AS place
            FROM jsonb_array_elements(caps) WITH ORDINALITY LOOP
        SELECT * INTO account FROM accounts WHERE scope = cap.scope AND unit = unit_name AND run_id = run;
        CONTINUE WHEN account.escrow >= total AND account.escrow_limit <= cap.most;
        IF NOT unit_name || ' ' || cap.scope = ANY (locked) THEN -- another client has taken the escrow away since
            PERFORM lock_scope(unit_name || ' ' || cap.scope);
            locked := locked || (unit_name || ' ' || cap.scope);
        END IF;
        SELECT sum(spent), sum(held), sum(escrow) - account.escrow INTO spent_sum, held_sum, others
            FROM accounts WHERE scope = cap.scope AND unit = unit_name;
        IF spent_sum + held_sum + others + total > cap.most AND others > 0 THEN
            UPDATE accounts SET escrow = 0 WHERE scope = cap.scope AND unit = unit_name AND run_id <> run AND escrow > 0;
            SELECT sum(spent), sum(held), 0 INTO spent_sum, held_sum, others FROM accounts WHERE scope = cap.scope AND unit = unit_name;
        END IF;
        IF spent_sum + total > cap.most THEN
            RETURN cap.place;
        ELSIF spent_sum + held_sum + total > cap.most THEN
            waits := CASE WHEN waits = 0 THEN -cap.place ELSE waits END;
            CONTINUE;
        END IF;
        -- A 32nd of the remaining budget, at most 256 claims like this one, in whole claims.
        portion := total * trunc(least(256, (cap.most - spent_sum - held_sum - others - total) / 32 / total));
        UPDATE accounts SET escrow = total + CASE WHEN portion >= 4 * total THEN portion ELSE 0 END, escrow_limit = cap.most
            WHERE scope = cap.scope AND unit = unit_name AND run_id = run;
    END LOOP;
    IF waits = 0 THEN -- the amount becomes a reservation
        UPDATE accounts SET escrow = escrow - total
            WHERE run_id = run AND unit = unit_name AND scope IN (SELECT value->>'scope' FROM jsonb_array_elements(caps));
    END IF;
    RETURN waits;
END $$;

-- The numbers of the open reservations whose lease is over, oldest first. With *all_runs* also those of runs whose lease is over.
CREATE OR REPLACE FUNCTION expired_reservations(moment timestamptz, all_runs boolean) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT all_runs AND NOT EXISTS (SELECT 1 FROM reservations WHERE lease_until < moment) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(
        SELECT r.seq FROM reservations r LEFT JOIN leases l USING (run_id)
            WHERE r.lease_until < moment AND NOT (r.outlives AND coalesce(l.until >= clock_timestamp(), false))
                OR all_runs AND l.until < clock_timestamp() AND NOT r.outlives
            ORDER BY 1);
END $$;

-- Add the amounts of granted claims to the accounts.
CREATE OR REPLACE FUNCTION hold_amounts(claims jsonb, places integer[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO accounts (scope, unit, run_id, held)
        SELECT scope COLLATE "C", spending->>'unit', spending->>'run', sum((spending->>'amount')::numeric)
            FROM unnest(places) AS place CROSS JOIN LATERAL (SELECT claims->(place - 1)->'spending') AS granted (spending)
                CROSS JOIN jsonb_array_elements_text(spending->'scopes') AS scope
            GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
        ON CONFLICT (scope, unit, run_id) DO UPDATE SET held = accounts.held + excluded.held;
END $$;

-- Append the events of granted claims, as blocks of their runs, and open their reservations.
CREATE OR REPLACE FUNCTION write_claims(claims jsonb, places integer[], leaves bytea[], lines text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    size integer := cardinality(places);
    number bigint := take_numbers(size);
    start integer := 1;
    claim jsonb := claims->(places[1] - 1);
    run text := claim->>'run';
    part_leaves bytea := '';
    body text := '';
    lowest text;
    highest text;
    start_time text := claim->>'time';
    end_time text := start_time;
BEGIN
    FOR n IN 1 .. size LOOP
        claim := claims->(places[n] - 1);
        part_leaves := part_leaves || leaves[places[n]];
        body := body || CASE body WHEN '' THEN E'[\n' ELSE E',\n' END || lines[places[n]];
        lowest := least(lowest, claim->>'subject' COLLATE "C");
        highest := greatest(highest, claim->>'subject' COLLATE "C");
        start_time := least(start_time, claim->>'time' COLLATE "C");
        end_time := greatest(end_time, claim->>'time' COLLATE "C");
        claim := claims->(places[n + 1] - 1);
        IF n = size OR claim->>'run' <> run THEN
            PERFORM add_block(run, number + start - 1, n - start + 1, '{spend.reserved}', decode(lowest, 'hex'), decode(highest, 'hex'),
                start_time, end_time, part_leaves, body || E'\n]', NULL);
            start := n + 1;
            run := claim->>'run';
            part_leaves := '';
            body := '';
            lowest := NULL;
            highest := NULL;
            start_time := claim->>'time';
            end_time := start_time;
        END IF;
    END LOOP;
    PERFORM open_reservation(claims->(places[n] - 1)->'spending', number + n - 1) FROM generate_series(1, size) AS n;
END $$;

-- Append blocks, which have the events of the lost reservations *lost_ids*, and decide *claims*: {run, caps, amount, unit, time, subject,
-- spending}, each with its leaf and its line. Without *lost_ids* return the numbers of reservations to close first, if there are any: then
-- nothing was changed.
CREATE OR REPLACE FUNCTION reserve_claims(
    client_name text, change_number bigint, lease_run text, lease_token bigint, seconds double precision, hints jsonb, leaves bytea[],
    bodies text[], maker_names text[], maker_lines text[], digests bytea[], contents text[], spending jsonb, moment timestamptz,
    all_runs boolean, lost_ids text[], claims jsonb, claim_leaves bytea[], claim_lines text[], OUT expired bigint[], OUT decided integer[])
    LANGUAGE plpgsql AS $$
DECLARE
    claim jsonb;
    answer integer;
    granted integer[] := '{}';
    locked text[];
    are_equal boolean;
BEGIN
    IF begin_change(client_name, change_number, lease_run, lease_token, seconds) THEN
        SELECT answers INTO decided FROM changes WHERE client = client_name;
        RETURN;
    END IF;
    IF lost_ids IS NULL THEN
        expired := expired_reservations(moment, all_runs);
        IF expired <> '{}' THEN
            RETURN;
        END IF;
    END IF;
    PERFORM lock_chains(runs_of(hints) || runs_of(claims));
    IF (SELECT count(*) FROM reservations WHERE id = ANY (lost_ids)) < cardinality(lost_ids) THEN
        RAISE EXCEPTION 'another process has closed a reservation' USING ERRCODE = 'DC002';
    END IF;
    locked := lock_scopes(claims);
    IF jsonb_array_length(hints) > 0 THEN
        PERFORM write_blocks(hints, leaves, bodies, maker_names, maker_lines, digests, contents, spending);
    END IF;
    -- Claims under the same caps are decided by their sum first, which is the usual case.
    are_equal := NOT EXISTS (SELECT 1 FROM jsonb_array_elements(claims) WHERE value->'caps' <> claims->0->'caps'
        OR value->'run' <> claims->0->'run' OR value->'unit' <> claims->0->'unit');
    IF are_equal AND decide(claims->0->>'run', (SELECT sum((value->>'amount')::numeric) FROM jsonb_array_elements(claims)),
            claims->0->>'unit', claims->0->'caps', locked) = 0 THEN
        granted := ARRAY(SELECT generate_series(1, jsonb_array_length(claims)));
        decided := array_fill(0, ARRAY[jsonb_array_length(claims)]);
        PERFORM hold_amounts(claims, granted);
    ELSE
        decided := '{}';
        FOR place IN 1 .. jsonb_array_length(claims) LOOP
            claim := claims->(place - 1);
            answer := decide(claim->>'run', (claim->>'amount')::numeric, claim->>'unit', claim->'caps', locked);
            IF answer = 0 THEN
                granted := granted || place;
                PERFORM hold_amounts(claims, ARRAY[place]);
            END IF;
            decided := decided || answer;
        END LOOP;
    END IF;
    IF granted <> '{}' THEN
        PERFORM write_claims(claims, granted, claim_leaves, claim_lines);
    END IF;
    UPDATE changes SET change = change_number, last = NULL, digest = NULL, answers = decided, at = clock_timestamp()
        WHERE client = client_name;
END $$;
