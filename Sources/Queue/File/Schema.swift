internal import CSQLite
internal import Model

/// Makes, checks and upgrades the database's tables.
enum Schema {
    static let version = 9
    /// "SPOO": the first four bytes of the database say whose it is.
    static let applicationID = 0x5350_4F4F

    static var sql: String { String(decoding: PackageResources.schema_sql, as: UTF8.self) }

    /// Sets up a connection; makes the tables in an empty database, upgrades older ones, refuses newer ones.
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
                // However full the file is.
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

    /// Why a file that is not empty is not opened; nil when it is. For the start and for `check`.
    static func refusal(version: Int, application: Int, path: String) -> String? {
        guard application == applicationID else {
            return "\(path) is not Spoolship's queue; move it away or name another state_directory"
        }
        guard version >= 1 else { return "\(path) has an unknown schema \(version); move it away" }
        guard version > Schema.version else { return nil }
        return "\(path) was written by a newer version (schema \(version), this program knows \(Schema.version)); "
            + "install that version again"
    }

    /// Whether a file that would be refused is ours with a damaged head: it has our tables, column by column, and nothing else,
    /// and the numbers in its head are a bit away from ours.
    ///
    /// A newer version's file, or another program's, differs in its tables.
    static func isDamaged(version: Int, application: Int, _ columns: [String]) throws(QueueError) -> Bool {
        let versionBits = (1...Schema.version).contains(version) ? 0 : version ^ Schema.version
        // Numbers of 32 bits, which SQLite gives with their sign.
        let bits = [application ^ applicationID, versionBits].reduce(0) {
            $0 + UInt32(truncatingIfNeeded: $1).nonzeroBitCount
        }
        guard bits <= 2 else { return false }
        let known = try Database(path: ":memory:", vfs: nil, isScratch: true)
        defer { known.close() }
        try known.execute(sql)
        return try columns == self.columns(of: known)
    }

    static func columns(of database: Database) throws(QueueError) -> [String] {
        try database.prepare(
            "SELECT m.type || ' ' || m.name || ' ' || ifnull(p.name, '') FROM sqlite_schema AS m "
                + "LEFT JOIN pragma_table_info(m.name) AS p WHERE m.name NOT LIKE 'sqlite_%' ORDER BY 1"
        ).all { $0.text(0) }
    }

    private static func configure(_ database: Database, _ options: QueueOptions) throws(QueueError) {
        try database.execute("PRAGMA journal_mode = WAL")
        try database.execute("PRAGMA synchronous = \(options.durability == .powerLoss ? "FULL" : "NORMAL")")
        // To overwrite all that is deleted would write twice the bytes: only what may be in clear is, `overwriting` does it.
        try database.execute("PRAGMA secure_delete = FAST")
        try database.execute("PRAGMA temp_store = MEMORY")
        try database.execute("PRAGMA cache_size = -2048")
        try limit(database, options)
        // What a WAL that once grew may keep on disk.
        try database.execute("PRAGMA journal_size_limit = \(FileBounds(options).wal / 2)")
        database.watchWAL()
    }

    private static func limit(_ database: Database, _ options: QueueOptions) throws(QueueError) {
        let pageSize = try database.integer("PRAGMA page_size") ?? 4096
        try database.execute("PRAGMA max_page_count = \(FileBounds(options).file / pageSize)")
    }
}

/// How large the files may become: file and WAL together stay below 1.5 times the sum of the bounds + 4 MiB, and what the
/// places of the spool's files take besides (`QueueFile.paid`).
struct FileBounds: Equatable {
    /// The bound of the database file, in bytes.
    let file: Int
    /// The bound of the WAL, in bytes.
    let wal: Int
    /// The WAL is written back when it has reached this size.
    let checkpointAt: Int
    /// A reader keeps the WAL from being written back: beyond this size nothing is stored.
    let storeBelow: Int
    /// Beyond this size no new batch is formed or leased, either.
    let leaseBelow: Int
    /// The most bytes of frames in one transaction.
    let transaction: Int
    /// The page size of a new database.
    let pageSize: Int

    /// - Parameter cap: the cap in force, if that is another than the options'.
    init(_ options: QueueOptions, maxSize cap: Int? = nil) {
        let maxSize = cap ?? options.maxSize
        let sum = maxSize + options.deadLettersMaxSize + options.quarantineMaxSize
        wal = min(sum / 4 + (2 << 20), 64 << 20)
        file = sum + sum / 2 + (4 << 20) - wal
        checkpointAt = min(max(wal / 4, 256 << 10), 16 << 20)
        storeBelow = wal / 2
        leaseBelow = wal / 4 * 3
        transaction = min(max(wal / 8, 64 << 10), 2 << 20)
        // Large pages suit large frames; small frames would leave half of each empty.
        let frames = min(options.batchEvents * 100, options.batchBytes / 4)
        pageSize = frames >= 32 << 10 && maxSize >= 64 << 20 ? 16_384 : 4_096
    }
}
