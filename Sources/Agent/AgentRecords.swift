internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool

/// What the control API asks of the queue, the dead letters and the quarantine.
struct AgentRecords: RecordControl {
    let queue: QueueStore
    /// Nil while no agent runs: rules and sessions are its.
    let rereader: Rereader?
    /// What reads the spool; nil while no agent runs.
    var spool: SpoolReader?
    var maxEventSize = 0
    var time: any TimeSource = SystemTime()
    /// When events must have arrived, by destination; unknown while no agent runs.
    var deadlines: @Sendable () async -> [DestinationName: [Deadline]] = { [:] }
    /// Where it is told that something was removed for good; nil while no agent runs, when the caller's shell knows.
    var log: Log?

    func list(
        _ store: RecordStore, _ filter: RecordSelection, after: String?, limit: Int
    ) async throws(ControlRefusal) -> (records: [JSONValue], next: String?) {
        let page = try await stored(try await queue.list(store, filter, after: after, limit: limit))
        guard store == .queue else { return (page.records, page.next) }
        let deadlines = await deadlines()
        let now = time.wallTime
        return (page.records.map { AgentRecords.withTimeLeft($0, deadlines, at: now) }, page.next)
    }

    /// Says by when queued events must have arrived, and how many seconds are left (ga09): for the first deadline of the
    /// oldest event.
    static func withTimeLeft(
        _ record: JSONValue, _ deadlines: [DestinationName: [Deadline]], at now: Timestamp
    ) -> JSONValue {
        guard !deadlines.isEmpty, let members = record.members, let name = record["destination"]?.string,
            let first = record["first_event_ms"]?.integer
        else { return record }
        let eventTime = Timestamp(milliseconds: Int64(first))
        let names = record["deadlines"]?.string.map { DeadlineNames(text: $0) }
        let known = (deadlines[DestinationName(name)] ?? []).filter { $0.concerns(names) }
        guard let next = known.min(by: { $0.due(for: eventTime) < $1.due(for: eventTime) }) else { return record }
        let due = next.due(for: eventTime)
        return .object(
            members + [
                .init("deadline", .string(next.name)), .init("due_ms", .integer(Int(due.milliseconds))),
                .init("left_seconds", .integer(Int((due - now) / .seconds(1)))),
            ])
    }

    func show(_ store: RecordStore, id: String) async throws(ControlRefusal) -> JSONValue {
        if let record = try await stored(try await queue.show(store, id: id)) { return record }
        throw ControlRefusal(status: 404, code: "not_found", message: "there is no record \(id); it may be gone by now")
    }

    func export(
        _ store: RecordStore, _ filter: RecordSelection, after: String?
    ) async throws(ControlRefusal) -> (lines: [UInt8], next: String?) {
        let page = try await stored(try await queue.export(store, filter, after: after))
        return (page.lines, page.next)
    }

    func retry(_ store: RecordStore, _ filter: RecordSelection) async throws(ControlRefusal) -> Int {
        guard store != .queue else {
            throw ControlRefusal(status: 400, code: "not_possible", message: "what is queued is sent by itself")
        }
        if store == .deadLetters { return try await stored(try await queue.retryDeadLetters(filter)) }
        guard let rereader else {
            throw ControlRefusal(
                status: 503, code: "no_agent", message: "the agent reads quarantined lines again: start it first")
        }
        if filter.isOfFiles { return try await retryFiles(of: filter.app, with: rereader) }
        return try await retryQuarantine(filter, with: rereader)
    }

    /// Reads the bad lines again that keep files in the spool, and has those removed that nothing keeps any more.
    private func retryFiles(of app: String?, with rereader: Rereader) async throws(ControlRefusal) -> Int {
        guard let spool else { return 0 }
        var count = 0
        for (key, path) in queue.snapshot.unkept.sorted(by: { $0.value < $1.value }) {
            let rows = try await stored(try await queue.unkept(of: key))
            guard let lines = rows.first?.lines, app == nil || app == lines.app else { continue }
            let known = await spool.path(ofFile: Hexadecimal.bytes(key))
            let file = "\(spool.figures.root?.path ?? "")/\(known ?? path)"
            if let read = try await relaying(
                awaiting: try await rereader.read(file, key, rows, maxEventSize: maxEventSize),
                ControlRefusal.init(intake:))
            {
                count += read
                continue
            }
            guard known == nil else {
                throw ControlRefusal(status: 503, code: "later", message: "\(path) is on its way; try again")
            }
            log?.warning("a file with bad lines is gone, they are not read again", ["path": path])
            var commit = Commit()
            for row in rows { commit.memory.updateValue(nil, forKey: row.name) }
            _ = try await stored(try await queue.store(commit))
        }
        await spool.removeReleased()
        return count
    }

    private func retryQuarantine(
        _ selection: RecordSelection, with rereader: Rereader
    ) async throws(ControlRefusal) -> Int {
        // What is quarantined again gets a greater number: the pages end where the quarantine ended at the start.
        var end: Int64 = 0
        while let last = try await stored(try await queue.quarantined(selection, after: end)).last { end = last.id }
        var count = 0
        var last: Int64 = 0
        while last < end {
            let records = try await stored(try await queue.quarantined(selection, after: last)).filter { $0.id <= end }
            guard let next = records.last else { break }
            last = next.id
            count += try await relaying(
                awaiting: try await rereader.read(records.map { ($0.id, $0.record) }), ControlRefusal.init(intake:))
        }
        return count
    }

    func purge(_ store: RecordStore, _ filter: RecordSelection) async throws(ControlRefusal) -> Int {
        let purged = try await stored(try await queue.purge(store, filter))
        if purged > 0 { log?.warning("removed by command", ["from": store.rawValue, "count": purged]) }
        return purged
    }

    func move(
        from source: String, to target: String, _ priority: Priority?
    ) async throws(ControlRefusal) -> (moved: Int, kept: Int) {
        let result = try await relaying(
            awaiting: try await queue.move(DestinationName(source), to: DestinationName(target), priority)
        ) { (error: QueueError) in
            error.code == .misuse
                ? ControlRefusal(status: 400, code: "unknown_destination", message: error.message)
                : ControlRefusal(queue: error)
        }
        return (result.moved, result.kept)
    }

    /// What the queue gives; its failure is the refusal.
    private func stored<Value>(
        _ work: @autoclosure () async throws(QueueError) -> Value
    ) async throws(ControlRefusal) -> Value {
        do throws(QueueError) { return try await work() } catch { throw ControlRefusal(queue: error) }
    }
}

extension ControlRefusal {
    init(queue error: QueueError, status: Int = 500) {
        self.init(status: status, code: error.code.rawValue, message: error.message)
    }
}
