/// The steps from older schemas to the present one. The tests keep a database of each older version.
///
/// Each step must add or rename a table, view, index or column: by its names an older program
/// recognises a newer file, rather than taking it for a damaged one (`Schema.isDamaged`).
enum Migrations {
    /// SQL of each step; the step at index 0 leads from version 1 to 2. Released steps must not change.
    private static let steps: [String] = [
        // From 1: a view for people.
        """
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
        ORDER BY delivery.priority DESC, delivery.chunk, delivery.first
        """,
        // From 2: saved copies of containers.
        """
        CREATE TABLE container (
            id TEXT PRIMARY KEY,
            version INTEGER NOT NULL,
            etag TEXT,
            confirmed_at INTEGER NOT NULL,
            file BLOB NOT NULL
        ) STRICT
        """,
        // From 3: deadlines that concern some apps only. The apps of events that are queued already are
        // unknown.
        "ALTER TABLE delivery ADD COLUMN deadlines TEXT",
        // From 4: number of dead letters by destination and priority.
        """
        ALTER TABLE ledger ADD COLUMN dead_letters INTEGER NOT NULL DEFAULT 0;
        UPDATE ledger SET dead_letters = (
            SELECT count(*) FROM dead_letter
            WHERE dead_letter.destination = ledger.destination AND dead_letter.priority = ledger.priority
        )
        """,
        // From 5: second copies of the counts, so that damage to one page does not lose them.
        """
        ALTER TABLE chunk ADD COLUMN wanted_by TEXT;
        ALTER TABLE total ADD COLUMN copy TEXT NOT NULL DEFAULT ''
        """,
        // From 6: a check that shows whether a row is torn. Rows stored before have no check, because
        // adding it would rewrite each of them.
        """
        ALTER TABLE chunk ADD COLUMN row_check INTEGER;
        ALTER TABLE delivery ADD COLUMN row_check INTEGER
        """,
        // From 7: holders of events. Those of events that are queued already are unknown
        // (`Transaction.countHoldings`).
        """
        CREATE TABLE holding (
            chunk INTEGER PRIMARY KEY,
            priority INTEGER NOT NULL,
            cost INTEGER NOT NULL,
            holders TEXT NOT NULL
        ) STRICT, WITHOUT ROWID;
        ALTER TABLE dead_letter ADD COLUMN app TEXT NOT NULL DEFAULT '';
        CREATE INDEX dead_letter_app ON dead_letter (app)
        """,
        // From 8: the other destinations of a rejected event, which must not get it a second time when it is
        // retried and moved. `?` means unknown.
        "ALTER TABLE dead_letter ADD COLUMN also_for TEXT NOT NULL DEFAULT '?'",
    ]

    /// Number of columns that a table has gained since the first schema. Rows of older versions lack
    /// them at the end, which a salvage must accept.
    static func columnsAdded(to table: String) -> Int {
        steps.reduce(0) {
            $0 + $1.split(separator: "\n").count { $0.hasPrefix("ALTER TABLE \(table) ADD COLUMN ") }
        }
    }

    /// Upgrades a database within the caller's transaction.
    static func run(on database: Database, from version: Int) throws(QueueError) {
        for (index, step) in steps.enumerated().dropFirst(version - 1) {
            try database.execute(step)
            try database.execute("PRAGMA user_version = \(index + 2)")
        }
    }
}
