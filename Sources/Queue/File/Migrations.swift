/// The steps from older schemas to the present one, from `Schema.oldest` on. A fixture of each older version is kept with the tests.
///
/// Each changes the name of a table, view, index or column, or adds one: an older program knows a newer file by that
/// (`Schema.isDamaged`).
enum Migrations {
    private static let steps: [(from: Int, sql: String)] = [
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
    ]

    /// How many columns a table has got since the oldest schema, behind those that it had.
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
