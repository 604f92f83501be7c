/// The steps from older schemas to the present one, in order. A fixture of each older version is kept with the tests.
///
/// Each changes the name of a table, view, index or column, or adds one: an older program knows a newer file by that
/// (`Schema.isDamaged`).
enum Migrations {
    private static let steps: [String] = [
        // From 1: the view for people.
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
        // From 2: the saved copies of containers.
        """
        CREATE TABLE container (
            id TEXT PRIMARY KEY,
            version INTEGER NOT NULL,
            etag TEXT,
            confirmed_at INTEGER NOT NULL,
            file BLOB NOT NULL
        ) STRICT
        """,
        // From 3: deadlines of some apps only. What is queued already is nobody's in particular.
        "ALTER TABLE delivery ADD COLUMN deadlines TEXT",
        // From 4: dead letters by destination and priority.
        """
        ALTER TABLE ledger ADD COLUMN dead_letters INTEGER NOT NULL DEFAULT 0;
        UPDATE ledger SET dead_letters = (
            SELECT count(*) FROM dead_letter
            WHERE dead_letter.destination = ledger.destination AND dead_letter.priority = ledger.priority
        )
        """,
        // From 5: second copies, so that damage to one page does not take what was counted.
        """
        ALTER TABLE chunk ADD COLUMN wanted_by TEXT;
        ALTER TABLE total ADD COLUMN copy TEXT NOT NULL DEFAULT ''
        """,
        // From 6: the check shows that a row is torn. Rows stored before have none: each would be written again.
        """
        ALTER TABLE chunk ADD COLUMN row_check INTEGER;
        ALTER TABLE delivery ADD COLUMN row_check INTEGER
        """,
        // From 7: whose events are. What is queued already is nobody's in particular (`Transaction.countHoldings`).
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
        // From 8: who else was to get a rejected event: retried and moved, it must not reach anybody twice. `?`: nobody knows.
        "ALTER TABLE dead_letter ADD COLUMN also_for TEXT NOT NULL DEFAULT '?'",
    ]

    /// How many columns a table has got since the first schema, behind those that it had.
    static func columnsAdded(to table: String) -> Int {
        steps.reduce(0) {
            $0 + $1.split(separator: "\n").count { $0.hasPrefix("ALTER TABLE \(table) ADD COLUMN ") }
        }
    }

    /// Upgrades a database, inside the caller's transaction.
    static func run(on database: Database, from version: Int) throws(QueueError) {
        for (place, step) in steps.enumerated().dropFirst(version - 1) {
            try database.execute(step)
            try database.execute("PRAGMA user_version = \(place + 2)")
        }
    }
}
