internal import Containers
package import EventLoops
internal import Events
internal import Glibc
package import Logs
package import Model
internal import Spool

/// Reads quarantined lines again, beside the spool. Lines that are now events are accepted, the others are
/// quarantined again; each line leaves the quarantine in the transaction that holds what became of it.
///
/// It has an intake of its own, because the spool's commits must hold exactly what the spool's checkpoints
/// cover.
package actor Rereader: LoopActor {
    package nonisolated let loop: EventLoop
    private let store: any CommitStore
    private let time: any TimeSource
    private let clock: ClockTrust
    private let log: Log
    private let rules: IntakeRules?
    /// Calls of functions that tags of these events ask for.
    private let calls: TagCalls
    /// Gives the settings in force.
    private let settings: @Sendable () async -> IntakeSettings
    /// Makes of them the settings for lines of files that are read in place, and of journals.
    private let ofPlaces: @Sendable (IntakeSettings) async -> IntakeSettings
    /// Lets one reading in at a time, and one command.
    private let turnstile = Turnstile()
    private let commandTurn = Turnstile()

    /// A reader of quarantined lines.
    ///
    /// - Parameters:
    ///   - memory: the queue's memory; entries of other owners are ignored.
    ///   - rules: the spool's rules. These events pass them like all others, and change no data layer.
    ///   - ofPlaces: makes of the settings those for lines that do not come from the spool. With the spool's,
    ///     a line of a log would be read as an event that it never was.
    ///   - settings: gives the settings in force. Sessions are off: these events belong to sessions of the
    ///     past.
    package init(
        on loop: EventLoop, store: any CommitStore, memory: [String: [UInt8]] = [:],
        rules: IntakeRules? = nil,
        time: any TimeSource, clock: sending ClockTrust, log: Log,
        ofPlaces: @escaping @Sendable (IntakeSettings) async -> IntakeSettings = { $0 },
        settings: @escaping @Sendable () async -> IntakeSettings
    ) {
        self.loop = loop
        self.store = store
        self.time = time
        self.clock = clock
        self.log = log
        self.rules = rules
        self.settings = settings
        self.ofPlaces = ofPlaces
        calls = TagCalls(rules?.functions, aside: "reread")
        calls.start(calls.restore(memory), on: loop)
    }

    /// Runs a command on the quarantine after those before it, so that no two commands handle the same
    /// records.
    package func inTurn<Value: Sendable>(
        _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
        let ticket = commandTurn.drawTicket()
        await commandTurn.takeTurn(ticket)
        defer { commandTurn.passTurn() }
        return try await body()
    }

    /// Reads lines again that were kept completely; others are skipped.
    ///
    /// - Returns: the number of lines that were read again.
    /// - Throws: `IntakeError`, with code `full` if the queue has no room for them now. What was read before
    ///   stays read.
    package func read(_ records: [(id: Int64, record: QuarantineRecord)]) async throws(IntakeError) -> Int {
        let whole = records.filter {
            Int64($0.record.content.count) == $0.record.length && !$0.record.content.isEmpty
        }
        return try await read(whole.map(\.record)) { commit, done in
            commit.requeued = done.map { whole[$0].id }
        }
    }

    /// Reads bad lines again in their file, because the quarantine could not hold them. The rows that name
    /// them change in the transaction that holds what became of the lines.
    ///
    /// - Parameters:
    ///   - path: where the file is now.
    ///   - key: what identifies the file; another file at this path is not read.
    ///   - rows: the lines to read, as ranges in the file, with the keys of the rows.
    /// - Returns: the number of lines that were read again; nil if the file, or what was to be read of it, is
    ///   gone.
    /// - Throws: as for kept lines.
    package func read(
        _ path: String, _ key: String, _ rows: [(name: String, lines: UnkeptLines)], maxEventSize: Int
    ) async throws(IntakeError) -> Int? {
        let file: BackfillFile
        do throws(SpoolError) {
            file = try BackfillFile(path: path, maxEventSize: maxEventSize)
        } catch {
            guard error.cause?.number == ENOENT else { throw IntakeError(.store, error.message) }
            return nil
        }
        guard file.key == key else { return nil }
        let id = Hexadecimal.bytes(key)
        var ranges = rows.flatMap(\.lines.ranges).sorted { $0.lowerBound < $1.lowerBound }[...]
        var rows = rows
        var count: Int?
        var skipped: [QuarantineRecord] = []
        while !ranges.isEmpty {
            var records: [QuarantineRecord] = []
            var bytes = 0
            var end = Int64.max
            do throws(SpoolError) {
                while bytes < 256 << 10, records.count < 1_000, let piece = try file.next(atMost: 1) {
                    while let first = ranges.first, first.upperBound <= piece.offset { ranges.removeFirst() }
                    guard let first = ranges.first else { break }
                    guard first.lowerBound <= piece.offset else { continue }
                    let length = piece.problem?.length ?? Int64(piece.bytes.count)
                    records.append(
                        QuarantineRecord(
                            reason: piece.problem?.reason ?? .notJSON, detail: piece.problem?.detail ?? "",
                            app: rows[0].lines.app, path: rows[0].lines.path, offset: piece.offset,
                            length: length,
                            content: piece.bytes, time: time.wallTime, file: id))
                    bytes += piece.bytes.count
                    end = piece.offset + max(1, length)
                }
            } catch {
                throw IntakeError(.store, error.message)
            }
            // The end of the file was reached: ranges that are left name nothing.
            if bytes < 256 << 10, records.count < 1_000 {
                end = .max
                ranges = []
            }
            guard !records.isEmpty else { break }
            let batch = records
            let last = end
            var from = 0
            let read = try await read(batch) { commit, done in
                let next = (done.last ?? from - 1) + 1
                skipped += (from..<next).filter { !done.contains($0) }.map { batch[$0] }
                from = next
                let end = next < batch.count ? batch[next].offset : last
                for index in rows.indices {
                    commit.memory.updateValue(nil, forKey: rows[index].name)
                    rows[index].lines.drop(before: end)
                    rows[index].name = rows[index].lines.name(of: id)
                }
                for line in skipped { rows[0].lines.add(line) }
                rows[0].name = rows[0].lines.name(of: id)
                for row in rows where !row.lines.ranges.isEmpty {
                    commit.memory[row.name] = row.lines.encoded
                }
            }
            skipped += batch[from...]
            count = (count ?? 0) + read
        }
        return count
    }

    /// Reads records again, each in as many commits as it needs.
    ///
    /// - Parameter mark: adds to a commit that the records at these indices were read again.
    private func read(
        _ records: [QuarantineRecord], mark: (inout Commit, [Int]) -> Void
    ) async throws(IntakeError) -> Int {
        let ticket = turnstile.drawTicket()
        await turnstile.takeTurn(ticket)
        defer { turnstile.passTurn() }
        var settings = await settings()
        settings.events.session.mode = .off
        let settingsOfPlaces = await ofPlaces(settings)
        guard settings.isCollecting else {
            throw IntakeError(.disabled, "collection is disabled; run `spoolship enable`")
        }
        let intake = Intake(
            settings, .reread, store: store, figures: IntakeFigures(), clock: clock, rules: rules,
            calls: calls,
            on: loop, time: time, log: log)
        var done: [Int] = []
        var count = 0
        var isOfPlace = false
        rules?.refresh()
        for (index, record) in records.enumerated() {
            if Rereader.isOfPlace(record.path) != isOfPlace {
                isOfPlace.toggle()
                intake.configure(isOfPlace ? settingsOfPlaces : settings)
            }
            if let awaited = rules?.awaited(for: record.app) {
                _ = try await store(intake, &done, mark)
                throw IntakeError(
                    .full, "events of \(record.app) wait for a document of the container \(awaited.id)")
            }
            // A tag may name destinations although the configuration names none.
            let route = settings.routes[settings.routeIndex(of: record.app)]
            guard !route.destinations.isEmpty || rules?.isIdle == false else {
                _ = try await store(intake, &done, mark)
                throw IntakeError(.noDestination, "no destination wants the events of \(record.app)")
            }
            guard Int64(record.content.count) >= record.length else {
                // The record holds only a part of its line, so it cannot become an event. It is kept, if
                // there is room by now.
                intake.quarantine(record)
                done.append(index)
                continue
            }
            let line =
                record.content.last == UInt8(ascii: "\n")
                ? record.content : record.content + [UInt8(ascii: "\n")]
            var source = SpoolSource(app: record.app, path: record.path, producer: nil)
            source.file = record.file
            var taken = 0
            while true {
                taken += await intake.takeAside(
                    line[taken...], from: source, at: record.offset + Int64(taken))
                // The line or its function calls need their own commit, so commit the lines before them
                // first.
                guard taken < line.count, !done.isEmpty || taken > 0 else { break }
                count += try await store(intake, &done, mark)
            }
            if taken == line.count {
                done.append(index)
            }
        }
        return try await count + store(intake, &done, mark)
    }

    /// Whether a line was read in place, or in a journal: the spool's files have paths below the spool.
    private static func isOfPlace(_ path: String) -> Bool { path.hasPrefix("/") || path == journalPath }

    /// The path of lines that come from a journal.
    package static let journalPath = "journal"

    /// Stores what was read so far, and returns how many records that were.
    private func store(
        _ intake: Intake, _ done: inout [Int], _ mark: (inout Commit, [Int]) -> Void
    ) async throws(IntakeError) -> Int {
        var commit = intake.takeCommit()
        let made = calls.takeNew()
        guard commit.read > 0 || !done.isEmpty else { return 0 }
        mark(&commit, done)
        var isStored = false
        defer { if isStored { calls.start(made) } else { calls.forget(made) } }
        isStored = try await store.storeOnce(commit) != nil
        guard isStored else { throw IntakeError(.full, "the queue has no room; try again later") }
        defer { done = [] }
        return done.count
    }
}
