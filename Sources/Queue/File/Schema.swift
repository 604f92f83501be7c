internal import CSQLite
internal import Model

/// Creates, checks and upgrades the tables of a database. `schema.sql` documents each table and column.
enum Schema {
    /// Number of the present schema (`PRAGMA user_version`). A change of the schema needs a new number
    /// and a step in `Migrations`.
    static let version = 9
    /// "SPOO" (`PRAGMA application_id`): marks the file as Spoolship's.
    static let applicationID = 0x5350_4F4F

    /// The text of `schema.sql`.
    static var sql: String { String(decoding: PackageResources.schema_sql, as: UTF8.self) }

    /// Configures a connection. Creates the tables in an empty database, upgrades older ones, and
    /// refuses those of newer versions and other programs.
    static func prepare(_ database: Database, _ options: QueueOptions) throws(QueueError) {
        let version = try database.integer("PRAGMA user_version") ?? 0
        let application = try database.integer("PRAGMA application_id") ?? 0
        let tables = try database.integer("SELECT count(*) FROM sqlite_schema")
        let isEmpty = version == 0 && application == 0 && tables == 0
        if !isEmpty, let refusal = refusal(version: version, application: application, path: database.path) {
            guard try !isDamaged(version: version, application: application, columns(of: database)) else {
                throw database.damage("its header does not match its tables")
            }
            let isNewer = application == applicationID && version > Schema.version
            throw QueueError(isNewer ? .newerSchema : .foreign, refusal)
        }
        if isEmpty {
            // Both take effect only before the first table is created:
            // https://www.sqlite.org/pragma.html#pragma_page_size
            try database.execute("PRAGMA page_size = \(FileBounds(options).pageSize)")
            try database.execute("PRAGMA auto_vacuum = INCREMENTAL")
        }
        try configure(database, options)
        guard version < Schema.version else { return }
        try database.begin()
        do {
            if isEmpty {
                try database.execute(sql)
            } else {
                // An upgrade must succeed even if the file is full: it may add 256 pages.
                let used = try database.integer("PRAGMA page_count") ?? 0
                try database.execute("PRAGMA max_page_count = \(used + 256)")
                try Migrations.run(on: database, from: version)
            }
            try database.commit()
            try limit(database, options)
        } catch {
            database.rollback()
            throw error
        }
    }

    /// Why a file that is not empty cannot be opened; nil if it can. Used by the start and by `check`.
    static func refusal(version: Int, application: Int, path: String) -> String? {
        guard application == applicationID else {
            return "\(path) is not Spoolship's queue; move it away or name another state_directory"
        }
        guard version >= 1 else { return "\(path) has an unknown schema \(version); move it away" }
        guard version > Schema.version else { return nil }
        return
            "\(path) was written by a newer version (schema \(version), this program knows "
            + "\(Schema.version)); install that version again"
    }

    /// Whether a file that would be refused is ours with a damaged header: it has exactly our tables
    /// and columns, and at most two bits of the header's numbers differ from ours.
    ///
    /// A file of a newer version or another program differs in its tables.
    static func isDamaged(version: Int, application: Int, _ columns: [String]) throws(QueueError) -> Bool {
        let versionBits = (1...Schema.version).contains(version) ? 0 : version ^ Schema.version
        // SQLite returns these 32-bit numbers with their sign.
        let bits = [application ^ applicationID, versionBits].reduce(0) {
            $0 + UInt32(truncatingIfNeeded: $1).nonzeroBitCount
        }
        guard bits <= 2 else { return false }
        let known = try Database(path: ":memory:", vfs: nil, isScratch: true)
        defer { known.close() }
        try known.execute(sql)
        return try columns == self.columns(of: known)
    }

    /// Type, name and columns of all tables, views and indexes, as comparable lines.
    static func columns(of database: Database) throws(QueueError) -> [String] {
        try database.prepare(
            "SELECT m.type || ' ' || m.name || ' ' || ifnull(p.name, '') FROM sqlite_schema AS m "
                + "LEFT JOIN pragma_table_info(m.name) AS p WHERE m.name NOT LIKE 'sqlite_%' ORDER BY 1"
        ).all { $0.text(0) }
    }

    /// Sets the connection's pragmas; they are not stored in the file, except WAL mode.
    private static func configure(_ database: Database, _ options: QueueOptions) throws(QueueError) {
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute("PRAGMA synchronous = \(options.durability == .powerLoss ? "FULL" : "NORMAL")")
        // FAST overwrites deleted content only if that causes no extra write. Overwriting everything would
        // double the bytes written; `TableWriter.overwrites` turns it on for rows that must not stay
        // readable.
        try database.execute("PRAGMA secure_delete = FAST")
        try database.execute("PRAGMA temp_store = MEMORY")
        // 2 MiB of page cache: bounds the agent's memory, whatever default SQLite was built with.
        try database.execute("PRAGMA cache_size = -2048")
        try limit(database, options)
        // Size to which SQLite truncates the WAL at a checkpoint, after it has once grown larger.
        try database.execute("PRAGMA journal_size_limit = \(FileBounds(options).wal / 2)")
        database.watchWAL()
    }

    /// Sets the bound of the database file, without what `QueueFile.payForPlaces` grants.
    private static func limit(_ database: Database, _ options: QueueOptions) throws(QueueError) {
        let pageSize = try database.integer("PRAGMA page_size") ?? 4096
        try database.execute("PRAGMA max_page_count = \(FileBounds(options).file / pageSize)")
    }
}

/// How large the files may become.
///
/// File and WAL together stay below 1.5 times the sum of the configured bounds plus 4 MiB, and what the
/// positions in the spool's files take in addition (`QueueFile.paid`). The factor leaves room for pages
/// that are not completely filled.
struct FileBounds: Equatable {
    /// The bound of the database file, in bytes.
    let file: Int
    /// The bound of the WAL, in bytes.
    let wal: Int
    /// Size of the WAL in bytes at which it is written back into the database file.
    let checkpointAt: Int
    /// Size of the WAL in bytes beyond which nothing is stored. It is exceeded only if a reader keeps
    /// the WAL from being written back.
    let storeBelow: Int
    /// Size of the WAL in bytes beyond which no batch is formed or leased either. Above `storeBelow`,
    /// so that delivery can still make progress when storing already waits.
    let leaseBelow: Int
    /// Most bytes of frames in one transaction. Bounds the time that other calls wait for it.
    let transaction: Int
    /// Page size of a new database in bytes.
    let pageSize: Int

    /// - Parameter cap: the cap in force, if it differs from the options'.
    init(_ options: QueueOptions, maxSize cap: Int? = nil) {
        let maxSize = cap ?? options.maxSize
        let sum = maxSize + options.deadLettersMaxSize + options.quarantineMaxSize
        wal = min(sum / 4 + (2 << 20), 64 << 20)
        file = sum + sum / 2 + (4 << 20) - wal
        checkpointAt = min(max(wal / 4, 256 << 10), 16 << 20)
        storeBelow = wal / 2
        leaseBelow = wal / 4 * 3
        transaction = min(max(wal / 8, 64 << 10), 2 << 20)
        // Large frames fill large pages; small frames would leave half of each large page empty. The
        // estimate assumes 100 bytes of compressed frame an event.
        let frames = min(options.batchEvents * 100, options.batchBytes / 4)
        pageSize = frames >= 32 << 10 && maxSize >= 64 << 20 ? 16_384 : 4_096
    }
}
