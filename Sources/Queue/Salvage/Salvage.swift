internal import EventLoops
internal import Frames
internal import Glibc
internal import Logs
internal import Model

/// Replaces a damaged database: rows on intact pages are copied into a new file, and the old file is
/// renamed.
///
/// A crash in the middle is harmless. The new file is renamed to `queue.sqlite.salvaged` only when it
/// is complete; before that the next start begins again, after that it finishes the replacement.
/// Salvage: page by page in DESIGN.md lists what must not come back.
enum Salvage {
    /// Name of the switch that counts salvages after which the number of lost events is unknown.
    static let unknownLosses = "salvage.unknown"

    /// Builds the replacement, puts it in place, and opens it.
    static func run(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Opening {
        let building = "\(directory.database).salvage"
        for suffix in ["", "-wal", "-shm"] { unlink(building + suffix) }
        let loss = try build(building, from: directory.database, options)
        // From here on a crash does not repeat the salvage: the next start finishes it.
        guard rename(building, directory.salvaged) == 0 else {
            throw QueueError(.io, "cannot rename \(building) (\(SystemError("rename")))")
        }
        let aside = try directory.finishSalvage(now: now) ?? directory.database
        let file = try QueueFile(path: directory.database, options: options)
        let figures = try FigureTables(file).load()
        log.error(
            "queue database replaced",
            [
                "kept_as": aside, "salvaged": figures.lanes.reduce(0) { $0 + $1.ledger.queued },
                "lost": loss.isKnown
                    ? "\(loss.events)" : loss.events > 0 ? "\(loss.events) or more" : "unknown",
                "hint":
                    "checkpoints on damaged pages are lost too: such files are reread from their beginning",
            ])
        return Opening(file: file, figures: figures, recoveries: 1)
    }

    /// Fills a new database with the rows on the pages of the damaged one.
    private static func build(
        _ path: String, from damaged: String, _ options: QueueOptions
    ) throws(QueueError) -> SalvageBalance.Loss {
        var plain = options
        // The target is synced once, by the checkpoint at the end; a sync for each commit would take
        // minutes.
        plain.durability = .crash
        let target = try QueueFile(path: path, options: plain)
        defer { target.database.close() }
        // Deleted rows that old pages bring back may exceed the bound until the balance removes them.
        try target.database.execute("PRAGMA max_page_count = 4294967294")
        var isWhole = false
        var doubtful: [LaneKey: Int] = [:]
        if let image = PageImage(damaged) {
            var copy = try SalvageCopy(image, target)
            try copy.copyAll()
            isWhole = copy.hasLedger
            doubtful = copy.doubtful
        }
        let tables = try TableWriter(target)
        let loss = try SalvageBalance(target, options).settle(hasLedger: isWhole, doubtful: doubtful, tables)
        try tables.commit()
        try target.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return loss
    }
}

extension LaneKey {
    /// The lane of a row of table `delivery`; nil if the values cannot be a lane.
    fileprivate init?(delivery values: [RecordValue]) {
        guard case .integer(let destination) = values[0], case .integer(let number) = values[1],
            let priority = Priority(rawValue: UInt8(clamping: number))
        else { return nil }
        self.init(destination: destination, priority: priority)
    }
}

/// Copies the rows of all pages, page by page, into the new database.
private struct SalvageCopy {
    let image: PageImage
    let target: QueueFile
    /// The tables of the new database, by whose columns rows are recognised.
    private let tables: [SalvagedTable]
    private let unpacker = FrameUnpacker()
    /// Rows copied so far, to keep the WAL short.
    private var rows = 0
    /// Whether rows of the ledger were found, so that a lane without a row had no events.
    private(set) var hasLedger = false
    /// Number of events, by lane, in rows that may have been deleted since. An inner page of the
    /// deliveries' tree holds a row for each page below it; an older version of the page brings back
    /// rows that the newer one no longer had.
    private(set) var doubtful: [LaneKey: Int] = [:]

    init(_ image: PageImage, _ target: QueueFile) throws(QueueError) {
        self.image = image
        self.target = target
        tables = try SalvagedTable.all(in: target.database)
    }

    /// Copies every row of every page that is in use.
    mutating func copyAll() throws(QueueError) {
        try target.database.begin()
        // The schema inserts an empty row of totals, which would keep the salvaged one out.
        try target.database.execute("DELETE FROM total")
        for number in stride(from: 1, through: image.count, by: 1) {
            guard let page = image.page(number), let tree = TreePage(page, isFirst: number == 1),
                !image.isFree(number)
            else { continue }
            for cell in tree.cells {
                guard let record = tree.record(cell, page, image),
                    let row = SalvagedRow(record.row, record.values, in: tree.kind, of: tables)
                else { continue }
                try insert(row, isDoubtful: image.mayBeStale && tree.kind == .indexInterior)
            }
        }
        try target.database.commit()
    }

    /// Inserts a row after the checks of its table. Rows that fail them are skipped: they are damaged.
    private mutating func insert(_ found: SalvagedRow, isDoubtful: Bool) throws(QueueError) {
        var values = found.values
        switch found.table.name {
        case "chunk":
            guard let checked = try checked(chunk: values) else { return }
            values = checked
        case "delivery":
            guard isAsStored(delivery: values) else { return }
            if isDoubtful, let lane = LaneKey(delivery: values), case .integer(let events) = values[4] {
                doubtful[lane, default: 0] += Int(clamping: events)
            }
        case "ledger": hasLedger = true
        default: break
        }
        let insert = try target.statement(found.table.insert(values.count))
        for (index, value) in values.enumerated() { insert.bind(Int32(index + 1), value) }
        do {
            try insert.run()
        } catch {
            // A row that violates a constraint of its table is damaged. Other errors concern the new
            // database.
            guard error.code == .io, error.isDamage else { throw error }
        }
        rows += 1
        if rows % 1_000 == 0 {
            try flush()
        }
    }

    /// Whether a delivery's values belong to one row, rather than to two rows on a torn page. Rows of
    /// older schemas have no check and are accepted.
    private func isAsStored(delivery values: [RecordValue]) -> Bool {
        guard values.count == 12, case .integer(let check) = values[11] else { return true }
        func number(_ column: Int) -> Int64 {
            if case .integer(let number) = values[column] {
                number
            } else {
                0
            }
        }
        var batch: BatchID?
        if case .blob(let bytes) = values[8] {
            batch = bytes.withUnsafeBytes { BatchID(raw: $0) }
        }
        var deadlines: DeadlineNames?
        if case .text(let bytes) = values[10] {
            deadlines = DeadlineNames(text: String(decoding: bytes, as: UTF8.self))
        }
        let row = DeliveryRow(
            chunk: number(2), first: Int(number(3)), events: Int(number(4)), bytes: Int(number(5)),
            firstTime: Timestamp(nanoseconds: number(6)), acceptedAt: Timestamp(nanoseconds: number(7)),
            batch: batch,
            isFormed: number(9) != 0, deadlines: deadlines)
        return LaneKey(delivery: values).map { row.check(in: $0) } == check
    }

    /// A chunk's values, corrected to what its frame holds. Nil if the frame is damaged, so that the
    /// events are lost, or if the row was stored under another id.
    private func checked(chunk values: [RecordValue]) throws(QueueError) -> [RecordValue]? {
        guard case .integer(let id) = values[0], case .integer(let priority) = values[1],
            case .integer(let events) = values[3],
            case .integer(let bytes) = values[4], case .integer(let first) = values[5],
            case .integer(let last) = values[6], case .integer(let packing) = values[8],
            case .integer(let checksum) = values[9], case .blob(let frame) = values[10]
        else { return nil }
        if values.count == 13, case .integer(let check) = values[12], check != RowCheck.of(id, checksum) {
            return nil
        }
        guard Int64(frame.withUnsafeBytes { crc32($0) }) == checksum,
            let compression = Compression(rawValue: UInt8(truncatingIfNeeded: packing))
        else {
            // The holding notes that the chunk existed: it counts among the missing ones, so that no
            // delivery is recreated for another chunk in its place.
            try target.statement("REPLACE INTO holding VALUES (?, ?, 0, ?)").run(id, priority, "\(events) 0 ")
            return nil
        }
        var checked = values
        checked[5] = .integer(min(first, last))
        checked[6] = .integer(max(first, last))
        if unpacker.lines(frame, compression, bytes: Int(bytes), events: Int(events)) != nil {
            return checked
        }
        // The checksum covers the frame, not the numbers beside it: the frame is right if they differ.
        guard let lines = unpacker.lines(frame, compression, atMost: 64 << 20), lines.count > 0 else {
            return nil
        }
        checked[3] = .integer(Int64(lines.count))
        checked[4] = .integer(Int64(lines.bytes.count))
        return checked
    }

    /// Ends the transaction and writes the WAL back. A half-built target may be committed: it has its
    /// own name.
    private func flush() throws(QueueError) {
        try target.database.commit()
        try target.database.checkpointWAL()
        try target.database.begin()
    }
}
