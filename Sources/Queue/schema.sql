-- The queue's database: everything that Spoolship must not lose, in one file.
--
-- `sqlite3 queue.sqlite` shows it to a person; nobody but the agent writes to it. Times are nanoseconds since
-- 1970-01-01T00:00:00Z, sizes are bytes. Priorities: 1 normal, 2 critical. Compressions: 0 none, 1 gzip, 2 zstd.
-- A change here needs a new user_version and a migration (Migrations.swift).

PRAGMA application_id = 0x53504f4f; -- "SPOO"
PRAGMA user_version = 9;

-- Where events go. A destination that is no longer configured keeps its row while anything of it is stored or counted.
CREATE TABLE destination (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    -- The largest limits a full chunk was ever leased under. One within them may have been sent under its batch's id
    -- and is never split by a later limit; one beyond them certainly was not.
    lease_events INTEGER NOT NULL DEFAULT 0,
    lease_bytes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Events stored together, once for all of their destinations. Ids only grow (total.last_chunk): they are the order of
-- acceptance. A row lives as long as one delivery refers to it.
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    priority INTEGER NOT NULL,
    destinations INTEGER NOT NULL, -- how many it was accepted for
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,        -- of the lines, uncompressed, each with its line feed
    first_time INTEGER NOT NULL,   -- the least event time
    last_time INTEGER NOT NULL,    -- the greatest event time
    accepted_at INTEGER NOT NULL,  -- when the first of its events was accepted
    compression INTEGER NOT NULL,
    checksum INTEGER NOT NULL,     -- CRC-32 of the frame
    frame BLOB NOT NULL,           -- behind it, so that the other columns are read without it:
    wanted_by TEXT,                -- the destinations that it was accepted for, by number: 1,3; -4 got its events otherwise
    row_check INTEGER              -- what id and checksum come to (RowCheck.swift); null: an older version's row
) STRICT;

-- Whose the events of a chunk are: a row for each chunk, beside it because it is read without the frame. Without row ids, so that
-- where pages are swapped its own cannot be taken for a chunk's.
CREATE TABLE holding (
    chunk INTEGER PRIMARY KEY,
    priority INTEGER NOT NULL, -- the chunk's
    cost INTEGER NOT NULL,     -- the chunk's, in total.stored_bytes
    holders TEXT NOT NULL      -- runs of events of one app, as events, bytes, app: 12 3400 shop/3 900 web. Empty: nobody's
) STRICT, WITHOUT ROWID;

-- What a destination still has to get: a run of a chunk's events. The key is a lane (destination and priority) in
-- order of acceptance.
CREATE TABLE delivery (
    destination INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    chunk INTEGER NOT NULL,
    first INTEGER NOT NULL,        -- the place of its first event in the chunk, from 0
    events INTEGER NOT NULL,
    bytes INTEGER NOT NULL,        -- of these events, uncompressed
    first_time INTEGER NOT NULL,   -- the chunk's
    accepted_at INTEGER NOT NULL,  -- the chunk's
    -- The id of the batch that they are sent in; null: none yet. With state 0 it was drawn when a full chunk was
    -- stored, and counts from the first lease on; with state 1 the batch was formed by joining or splitting.
    batch BLOB,
    state INTEGER NOT NULL,
    deadlines TEXT, -- names of the deadlines that concern these events because of their app; null: none
    row_check INTEGER, -- what the other columns come to (RowCheck.swift); null: an older version's row
    PRIMARY KEY (destination, priority, chunk, first)
) STRICT, WITHOUT ROWID;

-- The rows of a formed batch. Full chunks, which are most, cost no entry here.
CREATE INDEX delivery_formed ON delivery (batch) WHERE state = 1;

-- The ledger: deliveries by destination and priority, since the database was made.
-- accepted + retried = acknowledged + dead_lettered + evicted + expired + discarded + lost + queued
-- The row of destination 0 and priority 0 is no ledger: it is a second copy of table total (last_chunk, max_size, read,
-- accepted, refused, quarantined, dead_letters_purged, quarantine_purged, in the columns from accepted on).
CREATE TABLE ledger (
    destination INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    accepted INTEGER NOT NULL DEFAULT 0,
    retried INTEGER NOT NULL DEFAULT 0,
    acknowledged INTEGER NOT NULL DEFAULT 0,
    dead_lettered INTEGER NOT NULL DEFAULT 0,
    evicted INTEGER NOT NULL DEFAULT 0,
    expired INTEGER NOT NULL DEFAULT 0,
    discarded INTEGER NOT NULL DEFAULT 0,
    lost INTEGER NOT NULL DEFAULT 0,
    queued INTEGER NOT NULL DEFAULT 0,
    queued_bytes INTEGER NOT NULL DEFAULT 0, -- of the queued events, uncompressed
    dead_letters INTEGER NOT NULL DEFAULT 0, -- rows of dead_letter: kept, neither purged nor sent again
    PRIMARY KEY (destination, priority)
) STRICT, WITHOUT ROWID;

-- ledger.discarded by reason. Events that no destination wanted have destination 0 and stand in no ledger row.
CREATE TABLE discard (
    destination INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    reason TEXT NOT NULL,
    events INTEGER NOT NULL,
    PRIMARY KEY (destination, priority, reason)
) STRICT, WITHOUT ROWID;

-- Figures that stand by themselves: one row.
CREATE TABLE total (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    last_chunk INTEGER NOT NULL DEFAULT 0,
    stored_bytes INTEGER NOT NULL DEFAULT 0,     -- what queue.max_size bounds: frames and 64 for each row
    max_size INTEGER NOT NULL DEFAULT 0,         -- the bound in force
    -- Events read from the spool: read = accepted + refused + quarantined.
    read INTEGER NOT NULL DEFAULT 0,
    accepted INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    quarantined INTEGER NOT NULL DEFAULT 0,
    dead_letters INTEGER NOT NULL DEFAULT 0,     -- rows
    dead_letter_bytes INTEGER NOT NULL DEFAULT 0,
    dead_letters_purged INTEGER NOT NULL DEFAULT 0,
    quarantine_records INTEGER NOT NULL DEFAULT 0,
    quarantine_bytes INTEGER NOT NULL DEFAULT 0,
    quarantine_purged INTEGER NOT NULL DEFAULT 0,
    copy TEXT NOT NULL DEFAULT ''                -- a second copy of destinations and ledger, a line each
) STRICT;
INSERT INTO total (id) VALUES (1);

-- How far each file of the spool was read.
CREATE TABLE checkpoint (
    key BLOB PRIMARY KEY, -- the file's identity
    path TEXT NOT NULL,   -- for people
    offset INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- Drop files whose events are all here and whose unlink is not durable yet.
CREATE TABLE done_record (
    claim BLOB NOT NULL,
    handle BLOB NOT NULL,
    PRIMARY KEY (claim, handle)
) STRICT, WITHOUT ROWID;

-- What a pass over the spool remembers: sessions, counters of limits.
CREATE TABLE memory (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- What a person or a destination has switched, and what outlives a restart: pause, disabled, interval, Retry-After.
CREATE TABLE switch (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The last good fetch of each container; what is read back is verified again.
CREATE TABLE container (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,      -- the least that is taken from now on
    etag TEXT,
    confirmed_at INTEGER NOT NULL, -- when the server last said that it is the newest
    file BLOB NOT NULL             -- as served: the document with its signatures
) STRICT;

-- Events that a destination rejected for good.
CREATE TABLE dead_letter (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    destination INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    batch BLOB NOT NULL,
    accepted_at INTEGER NOT NULL, -- of its chunk, as are the event times
    first_time INTEGER NOT NULL,
    last_time INTEGER NOT NULL,
    rejected_at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    status INTEGER,
    message TEXT NOT NULL,
    excerpt TEXT NOT NULL,        -- the beginning of the destination's answer
    event BLOB NOT NULL,          -- the line, with its line feed
    app TEXT NOT NULL DEFAULT '', -- whose it is; empty: nobody knows
    also_for TEXT NOT NULL DEFAULT '?' -- who else was to get it, as in chunk.wanted_by: ,-1,-3
) STRICT;

-- The oldest of an app.
CREATE INDEX dead_letter_app ON dead_letter (app);

-- Lines and files that could not be read as events.
CREATE TABLE quarantine (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    reason TEXT NOT NULL,
    detail TEXT NOT NULL,
    app TEXT NOT NULL,
    path TEXT NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    time INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- What waits, for a person: SELECT * FROM queued;
CREATE VIEW queued AS
SELECT
    destination.name AS destination,
    CASE delivery.priority WHEN 2 THEN 'critical' ELSE 'normal' END AS priority,
    strftime('%Y-%m-%dT%H:%M:%SZ', delivery.accepted_at / 1000000000, 'unixepoch') AS accepted,
    delivery.chunk AS chunk,
    delivery.first AS first,
    delivery.events AS events,
    delivery.bytes AS bytes,
    lower(hex(delivery.batch)) AS batch
FROM delivery JOIN destination ON destination.id = delivery.destination
ORDER BY delivery.priority DESC, delivery.chunk, delivery.first;
