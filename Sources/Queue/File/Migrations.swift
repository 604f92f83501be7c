/// The steps from older schemas to the present one, in order. A fixture of each older version is kept with the tests.
///
/// Each changes the name of a table, view, index or column, or adds one: an older program knows a newer file by that
/// (`Schema.isDamaged`).
enum Migrations {
    private static let steps: [(from: Int, sql: String)] = [
        (
            // The view for people.
            from: 1,
            sql: """
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
            """
        ),
        (
            // The saved copies of containers.
            from: 2,
            sql: """
            CREATE TABLE container (
                id TEXT PRIMARY KEY,
                version INTEGER NOT NULL,
                etag TEXT,
                confirmed_at INTEGER NOT NULL,
                file BLOB NOT NULL
            ) STRICT
            """
        ),
        (
            // Deadlines of some apps only. What is queued already is nobody's in particular.
            from: 3, sql: "ALTER TABLE delivery ADD COLUMN deadlines TEXT"
        ),
        (
            // Dead letters by destination and priority.
            from: 4,
            sql: """
            ALTER TABLE ledger ADD COLUMN dead_letters INTEGER NOT NULL DEFAULT 0;
            UPDATE ledger SET dead_letters = (
                SELECT count(*) FROM dead_letter
                WHERE dead_letter.destination = ledger.destination AND dead_letter.priority = ledger.priority
            )
            """
        ),
        (
            // Second copies, so that damage to one page does not take what was counted.
            from: 5,
            sql: """
            ALTER TABLE chunk ADD COLUMN wanted_by TEXT;
            ALTER TABLE total ADD COLUMN copy TEXT NOT NULL DEFAULT ''
            """
        ),
        (
            // The check shows that a row is torn. Rows that are stored already have none: each would have to be written again.
            from: 6,
            sql: """
            ALTER TABLE chunk ADD COLUMN row_check INTEGER;
            ALTER TABLE delivery ADD COLUMN row_check INTEGER
            """
        ),
        (
            // Whose events are. What is queued already is nobody's in particular (`Transaction.countHoldings`).
            from: 7,
            sql: """
            CREATE TABLE holding (
                chunk INTEGER PRIMARY KEY,
                priority INTEGER NOT NULL,
                cost INTEGER NOT NULL,
                holders TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            ALTER TABLE dead_letter ADD COLUMN app TEXT NOT NULL DEFAULT '';
            CREATE INDEX dead_letter_app ON dead_letter (app)
            """
        ),
        (
            // Who else was to get a rejected event: what is retried and then moved must not reach anybody twice. `?`: nobody knows.
            from: 8, sql: "ALTER TABLE dead_letter ADD COLUMN also_for TEXT NOT NULL DEFAULT '?'"
        ),
    ]

    /// How many columns a table has got since the first schema, behind those that it had.
    static func columnsAdded(to table: String) -> Int {
        steps.reduce(0) {
            $0 + $1.sql.split(separator: "\n").count { $0.hasPrefix("ALTER TABLE \(table) ADD COLUMN ") }
        }
    }

    /// Upgrades a database, inside the caller's transaction.
    static func run(on database: Database, from version: Int) throws(QueueError) {
        var reached = version
        for step in steps where step.from == reached {
            try database.execute(step.sql)
            reached += 1
            try database.execute("PRAGMA user_version = \(reached)")
        }
    }
}
