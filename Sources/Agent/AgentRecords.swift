internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool

/// What the control API asks of the queue, the dead letters and the quarantine.
struct AgentRecords: Sendable {
    let queue: QueueStore
    /// Nil while no agent runs: rules and sessions are its.
    let rereader: Rereader?
    /// What reads the spool; nil while no agent runs.
    var spool: SpoolReader?
    var maxEventSize = 0
    var time: any TimeSource = SystemTime()
    /// When events must have arrived, by destination; unknown while no agent runs.
    var deadlines: @Sendable () async -> [DestinationName: [Deadline]] = { [:] }
    /// What keeps rejected events beside the dead letters; nil while no agent runs: then the next start tries them.
    var driver: DeliveryDriver?
    /// Where it is told that something was removed for good; nil while no agent runs, when the caller's shell knows.
    var log: Log?

    func list(
        _ store: RecordStore, _ selection: RecordSelection, after: String?, limit: Int
    ) async throws -> RecordPage {
        var page = try await queue.list(store, selection, after: after, limit: limit)
        guard store == .queue else { return page }
        let (deadlines, now) = (await deadlines(), time.wallTime)
        page.records = page.records.map { AgentRecords.withTimeLeft($0, deadlines, at: now) }
        return page
    }

    /// Says when the first deadline of the oldest queued event is, and how many seconds are left (ga09).
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

    func show(_ store: RecordStore, _ id: String) async throws -> JSONValue {
        if let record = try await queue.show(store, id: id) { return record }
        throw ControlRefusal(404, "not_found", "there is no record \(id); it may have been removed")
    }

    /// Retries dead letters and what is set aside, or rereads quarantined lines; gives how many. All ids must be known.
    func retry(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        for id in selection.ids ?? [] { _ = try await show(store, id) }
        if store == .deadLetters {
            guard try await queue.switches()[AgentSwitch.collecting] != "off" else {
                throw ControlRefusal(409, "disabled", "collection is disabled; run `spoolship enable`")
            }
            let isOfApps = selection.ids == nil && selection.reason == nil
            let setAside = isOfApps ? await driver?.retrySetAside(for: selection.destination, app: selection.app) : 0
            return try await queue.retryDeadLetters(selection) + (setAside ?? 0)
        }
        guard let rereader else {
            throw ControlRefusal(503, "no_agent", "only a running agent rereads quarantined lines: start it first")
        }
        return try await rereader.inTurn {
            selection.isOfFiles
                ? try await retryFiles(of: selection.app, with: rereader)
                : try await retryQuarantine(selection, with: rereader)
        }
    }

    /// Reads the bad lines again that keep files in the spool, and has those removed that nothing keeps any more.
    private func retryFiles(of app: String?, with rereader: Rereader) async throws -> Int {
        guard let spool else { return 0 }
        var count = 0
        for (key, path) in queue.snapshot.unkept.sorted(by: { $0.value < $1.value }) {
            let rows = try await queue.unkept(of: key)
            guard let lines = rows.first?.lines, app == nil || app == lines.app else { continue }
            let known = await spool.path(ofFile: Hexadecimal.bytes(key))
            let file = "\(spool.figures.root?.path ?? "")/\(known ?? path)"
            if let read = try await rereader.read(file, key, rows, maxEventSize: maxEventSize) {
                count += read
                continue
            }
            guard known == nil else {
                throw ControlRefusal(503, "later", "\(path) is being moved; try again")
            }
            log?.warning("a file with bad lines was removed, they are not reread", ["path": path])
            var commit = Commit()
            for row in rows { commit.memory.updateValue(nil, forKey: row.name) }
            _ = try await queue.store(commit)
        }
        await spool.removeReleased()
        return count
    }

    private func retryQuarantine(_ selection: RecordSelection, with rereader: Rereader) async throws -> Int {
        // What is quarantined again gets a greater number: the pages end where the quarantine ended at the start.
        var end: Int64 = 0
        while let last = try await queue.quarantined(selection, after: end).last { end = last.id }
        var count = 0
        var last: Int64 = 0
        while last < end, !Task.isCancelled {
            let records = try await queue.quarantined(selection, after: last).filter { $0.id <= end }
            guard let next = records.last else { break }
            last = next.id
            count += try await rereader.read(records.map { ($0.id, $0.record) })
        }
        return count
    }

    /// Removes records; of the queue they count as discarded. Gives how many. Nothing is done if an id is unknown.
    func purge(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        for id in selection.ids ?? [] { _ = try await show(store, id) }
        let purged: Int
        if store == .quarantine, let rereader {
            purged = try await rereader.inTurn { [queue] in try await queue.purge(store, selection) }
        } else {
            purged = try await purgeNamed(store, selection)
        }
        if purged > 0 { log?.warning("removed by command", ["from": store.rawValue, "count": purged]) }
        return purged
    }

    private func purgeNamed(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        do throws(QueueError) {
            return try await queue.purge(store, selection)
        } catch {
            throw error.code == .misuse ? ControlRefusal(409, "in_one_batch", error.message) : error as any Error
        }
    }

    /// Lets what is queued for one destination wait for another instead.
    func move(from source: String, to target: String, _ priority: Priority?) async throws -> MovedEvents {
        do throws(QueueError) {
            return try await queue.move(DestinationName(source), to: DestinationName(target), priority)
        } catch {
            throw error.code == .misuse ? ControlRefusal(400, "unknown_destination", error.message) : error as any Error
        }
    }
}
