internal import EventLoops
internal import Frames
internal import Glibc
internal import Logs
internal import Model

/// Replaces a damaged database: rows on intact pages go into a new file, the old one is moved aside.
///
/// A crash in the middle repeats it or ends it: the new file gets its own name when it is complete, and takes the
/// database's place when the old one has left.
enum Salvage {
    /// The switch that says how often nobody knows what was lost.
    static let unknownLosses = "salvage.unknown"

    static func run(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Opening {
        let building = "\(directory.database).salvage"
        for suffix in ["", "-wal", "-shm"] { unlink(building + suffix) }
        let loss = try build(building, from: directory.database, options)
        guard rename(building, directory.salvaged) == 0 else {
            throw QueueError(.io, "cannot rename \(building) (\(SystemError("rename")))")
        }
        let aside = try directory.finishSalvage(now: now) ?? directory.database
        let file = try QueueFile(path: directory.database, options: options)
        let figures = try file.load()
        log.error(
            "queue database replaced",
            [
                "kept_as": aside, "salvaged": figures.lanes.reduce(0) { $0 + $1.ledger.queued },
                "lost": loss.isKnown ? "\(loss.events)" : loss.events > 0 ? "\(loss.events) or more" : "unknown",
                "hint": "checkpoints on damaged pages are lost too: such files are reread from their beginning",
            ])
        return Opening(file: file, figures: figures, recoveries: 1)
    }

    /// Fills a new database with the rows on the pages of an old one.
    private static func build(
        _ path: String, from damaged: String, _ options: QueueOptions
    ) throws(QueueError) -> SalvageBalance.Loss {
        var plain = options
        plain.durability = .crash
        let target = try QueueFile(path: path, options: plain)
        defer { target.database.close() }
        // It may hold rows that were deleted already, for a moment.
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
    /// Of a row of table `delivery`.
    fileprivate init?(delivery values: [RecordValue]) {
        guard case .integer(let destination) = values[0], case .integer(let number) = values[1],
            let priority = Priority(rawValue: UInt8(clamping: number))
        else { return nil }
        self.init(destination: destination, priority: priority)
    }
}

/// Copies row by row, page by page.
private struct SalvageCopy {
    let image: PageImage
    let target: QueueFile
    private let tables: [SalvagedTable]
    private let unpacker: FrameUnpacker
    private var rows = 0
    /// Whether the ledger's page was found, so that a lane without a row has none.
    private(set) var hasLedger = false
    /// How many events have rows that may have been deleted since, by lane. An inner page of the deliveries' tree holds a row for each
    /// page below it; an older version of it brings back rows that the newer one had no more.
    private(set) var doubtful: [LaneKey: Int] = [:]

    init(_ image: PageImage, _ target: QueueFile) throws(QueueError) {
        self.image = image
        self.target = target
        tables = try SalvagedTable.all(in: target.database)
        unpacker = try FrameUnpacker()
    }

    mutating func copyAll() throws(QueueError) {
        try target.database.begin()
        try target.database.execute("DELETE FROM total")
        for number in stride(from: 1, through: image.count, by: 1) {
            guard let page = image.page(number), let tree = TreePage(page, isFirst: number == 1), !image.isFree(number)
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
        for (place, value) in values.enumerated() { insert.bind(Int32(place + 1), value) }
        do {
            try insert.run()
        } catch {
            // A row that breaks a rule of its table is damaged.
            guard error.code == .io, error.isDamage else { throw error }
        }
        rows += 1
        if rows % 1_000 == 0 { try flush() }
    }

    /// Whether a delivery's values are all of one row, and not halves of two on a torn page. Older versions' do not say.
    private func isAsStored(delivery values: [RecordValue]) -> Bool {
        guard values.count == 12, case .integer(let check) = values[11] else { return true }
        func number(_ place: Int) -> Int64 { if case .integer(let number) = values[place] { number } else { 0 } }
        var batch: BatchID?
        if case .blob(let bytes) = values[8] { batch = bytes.withUnsafeBytes { BatchID(raw: $0) } }
        var deadlines: DeadlineNames?
        if case .text(let bytes) = values[10] {
            deadlines = DeadlineNames(text: String(decoding: bytes, as: UTF8.self))
        }
        let row = DeliveryRow(
            chunk: number(2), first: Int(number(3)), events: Int(number(4)), bytes: Int(number(5)),
            firstTime: Timestamp(nanoseconds: number(6)), acceptedAt: Timestamp(nanoseconds: number(7)), batch: batch,
            isFormed: number(9) != 0, deadlines: deadlines)
        return LaneKey(delivery: values).map { row.check(in: $0) } == check
    }

    /// A chunk's values as its frame says; nil if the frame is not what was stored, so that it is lost, or was stored under another number.
    private func checked(chunk values: [RecordValue]) throws(QueueError) -> [RecordValue]? {
        guard case .integer(let id) = values[0], case .integer(let priority) = values[1],
            case .integer(let events) = values[3],
            case .integer(let bytes) = values[4], case .integer(let first) = values[5],
            case .integer(let last) = values[6], case .integer(let packing) = values[8],
            case .integer(let checksum) = values[9], case .blob(let frame) = values[10]
        else { return nil }
        if values.count == 13, case .integer(let check) = values[12], check != RowCheck.of(id, checksum) { return nil }
        guard Int64(frame.withUnsafeBytes { crc32($0) }) == checksum,
            let compression = Compression(rawValue: UInt8(truncatingIfNeeded: packing))
        else {
            // As a holding without a chunk: in its place no other's delivery is made again.
            try target.statement("REPLACE INTO holding VALUES (?, ?, 0, ?)").run(id, priority, "\(events) 0 ")
            return nil
        }
        var checked = values
        checked[5] = .integer(min(first, last))
        checked[6] = .integer(max(first, last))
        if unpacker.lines(frame, compression, bytes: Int(bytes), events: Int(events)) != nil { return checked }
        // The frame has a checksum, the figures have none.
        guard let lines = unpacker.lines(frame, compression, atMost: 64 << 20), lines.count > 0 else { return nil }
        checked[3] = .integer(Int64(lines.count))
        checked[4] = .integer(Int64(lines.bytes.count))
        return checked
    }

    /// Keeps the WAL short; what is half done has its own name.
    private func flush() throws(QueueError) {
        try target.database.commit()
        try target.database.checkpointWAL()
        try target.database.begin()
    }
}
