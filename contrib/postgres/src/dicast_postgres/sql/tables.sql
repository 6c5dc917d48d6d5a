-- Tables of version 3. Blocks have the lines of format 4; each run has a chain of its own.
CREATE TABLE version (number integer NOT NULL);

CREATE TABLE chains (
    run_id text COLLATE "C", shard integer, number bigint NOT NULL UNIQUE, last bigint NOT NULL, lines bigint NOT NULL,
    digest bytea NOT NULL, PRIMARY KEY (run_id, shard));

CREATE TABLE blocks (
    first bigint PRIMARY KEY, last bigint NOT NULL, lines integer NOT NULL, run_id text COLLATE "C" NOT NULL, shard integer NOT NULL,
    types text[] NOT NULL, low bytea, high bytea, began text COLLATE "C" NOT NULL, ended text COLLATE "C" NOT NULL,
    prev bytea NOT NULL, digest bytea NOT NULL, marks bytea NOT NULL, body text NOT NULL,
    columns bytea);
-- The columns of a large block, for readers of very many verdicts. They are compressed already.
ALTER TABLE blocks ALTER columns SET STORAGE EXTERNAL;
CREATE INDEX blocks_of_runs ON blocks (run_id, shard, first);
CREATE INDEX blocks_of_types ON blocks USING gin (types);

CREATE TABLE makers (name text COLLATE "C" PRIMARY KEY, line text NOT NULL);
CREATE TABLE texts (digest bytea PRIMARY KEY, body text NOT NULL);

CREATE TABLE leases (run_id text COLLATE "C" PRIMARY KEY, token bigint NOT NULL, owner text NOT NULL, until timestamptz NOT NULL);

CREATE TABLE reservations (
    id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL, run_id text COLLATE "C" NOT NULL, scopes text[] NOT NULL, amount numeric NOT NULL,
    unit text NOT NULL, lease_until timestamptz, outlives boolean NOT NULL);
CREATE INDEX reservations_of_runs ON reservations (run_id);
CREATE INDEX reservations_by_lease ON reservations (lease_until);
CREATE TABLE lost (
    id text COLLATE "C" PRIMARY KEY, run_id text COLLATE "C" NOT NULL, scopes text[] NOT NULL, amount numeric NOT NULL, unit text NOT NULL);

-- A row for each scope, unit and run. Escrow is a part of the budget that the run may reserve from without a lock of the scope, under caps
-- of at least escrow_limit. It is no spending: another run that needs it takes it away.
CREATE TABLE accounts (
    scope text COLLATE "C", unit text COLLATE "C", run_id text COLLATE "C", spent numeric NOT NULL DEFAULT 0, held numeric NOT NULL DEFAULT 0,
    escrow numeric NOT NULL DEFAULT 0, escrow_limit numeric NOT NULL DEFAULT 0, PRIMARY KEY (scope, unit, run_id));

-- The newest change of each open ledger, so that a client that lost its connection can repeat a change without making it twice.
CREATE TABLE changes (
    client text COLLATE "C" PRIMARY KEY, change bigint NOT NULL, last bigint, digest bytea, answers integer[], at timestamptz NOT NULL);

CREATE SEQUENCE numbers;

-- lz4 reads faster than the default, but not every build of PostgreSQL has it.
DO $$
BEGIN
    ALTER TABLE blocks ALTER body SET COMPRESSION lz4;
    ALTER TABLE texts ALTER body SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported OR invalid_parameter_value THEN
    NULL;
END $$;
