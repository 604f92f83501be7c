internal import Containers
internal import Control
internal import Delivery
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool

/// What the control API does with the queue, the dead letters and the quarantine. Without a running agent the
/// same code serves the commands (`StoredRecords`); fields that only an agent has are nil then.
struct AgentRecords: Sendable {
    /// The queue's database, which also has the dead letters and the quarantine.
    let queue: QueueStore
    /// Passes quarantined lines through rules and sessions again. Nil while no agent runs.
    let rereader: Rereader?
    /// The reader that finds the current path of a file with bad lines. Nil while no agent runs.
    var spool: MovableReader?
    /// The longest event in bytes, for lines that are reread from their files.
    var maxEventSize = 0
    var time: any TimeSource = SystemTime()
    /// The deadlines of each destination; empty while no agent runs.
    var deadlines: @Sendable () async -> [DestinationName: [Deadline]] = { [:] }
    /// Holds events that are set aside, which `retry` tries as well. Nil while no agent runs: the next start
    /// tries these events anyway.
    var driver: DeliveryDriver?
    /// Makes the reading side forget what an erasure finds, and waits for commits that have already begun:
    /// such a commit would store erased events again. Does nothing while no agent runs.
    var forget: @Sendable (EventCondition) async -> Void = { _ in }
    /// The files around the queue, for an erasure.
    var places: ErasurePlaces?
    /// The spool's directory.
    var spoolDirectory = ""
    /// Receives a message when records are removed for good. Nil while no agent runs: then the caller sees
    /// the result.
    var log: Log?

    /// A page of records without their content; queued ones with the time that is left until their deadline.
    func list(
        _ store: RecordStore, _ selection: RecordSelection, after: String?, limit: Int
    ) async throws -> RecordPage {
        var page = try await queue.list(store, selection, after: after, limit: limit)
        guard store == .queue else { return page }
        let deadlines = await deadlines()
        let now = time.wallTime
        page.records = page.records.map { AgentRecords.withTimeLeft($0, deadlines, at: now) }
        return page
    }

    /// Adds to a record of the queue the first deadline of its oldest event, and how many seconds are left
    /// until then; negative when it has passed. Returns other records unchanged.
    static func withTimeLeft(
        _ record: JSONValue, _ deadlines: [DestinationName: [Deadline]], at now: Timestamp
    ) -> JSONValue {
        guard !deadlines.isEmpty, let members = record.members, let name = record["destination"]?.string,
            let first = record["first_event_ms"]?.integer
        else { return record }
        let eventTime = Timestamp(milliseconds: Int64(first))
        let names = record["deadlines"]?.string.map { DeadlineNames(text: $0) }
        let known = (deadlines[DestinationName(name)] ?? []).filter { $0.concerns(names) }
        guard let next = known.min(by: { $0.due(for: eventTime) < $1.due(for: eventTime) }) else {
            return record
        }
        let due = next.due(for: eventTime)
        return .object(
            members + [
                .init("deadline", .string(next.name)), .init("due_ms", .integer(Int(due.milliseconds))),
                .init("left_seconds", .integer(Int((due - now) / .seconds(1)))),
            ])
    }

    /// What would be lost with the queue and the spool: deliveries that were not acknowledged, and files with
    /// bytes that no commit covers. `whole` is false if there may be more files.
    func left() async throws -> JSONValue {
        let checkpoints = try await queue.checkpoints()
        let read = Dictionary(
            checkpoints.map { ($0.restoringPath.path, $0.offset) }, uniquingKeysWith: max)
        let directory = spoolDirectory
        let backlog = SilentFiles.answer(about: directory) { SpoolBacklog.measure(in: directory, read: read) }
        return [
            "events": .integer(queue.snapshot.lanes.reduce(0) { $0 + $1.ledger.queued }),
            "files": .integer(backlog?.files ?? 0), "bytes": .integer(Int(backlog?.bytes.value ?? 0)),
            "whole": .bool(backlog?.isWhole ?? false),
        ]
    }

    /// One record with its content.
    ///
    /// - Throws: `ControlRefusal` with status 404 for an unknown id.
    func show(_ store: RecordStore, _ id: String) async throws -> JSONValue {
        if let record = try await queue.show(store, id: id) { return record }
        throw ControlRefusal(404, "not_found", "there is no record \(id); it may have been removed")
    }

    /// Queues dead letters and events that are set aside again, or rereads quarantined lines.
    ///
    /// - Returns: how many records. If one id is unknown nothing is done.
    func retry(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        for id in selection.ids ?? [] { _ = try await show(store, id) }
        if store == .deadLetters {
            guard try await queue.switches()[AgentSwitch.collecting] != "off" else {
                throw ControlRefusal(409, "disabled", "collection is disabled; run `spoolship enable`")
            }
            // Events that are set aside are chosen by destination and app only: ids and reasons select dead
            // letters.
            let isOfApps = selection.ids == nil && selection.reason == nil
            let setAside =
                isOfApps ? await driver?.retrySetAside(for: selection.destination, app: selection.app) : 0
            return try await queue.retryDeadLetters(selection) + (setAside ?? 0)
        }
        guard let rereader else {
            throw ControlRefusal(
                503, "no_agent", "only a running agent rereads quarantined lines: start it first")
        }
        return try await rereader.inTurn {
            selection.isOfFiles
                ? try await retryFiles(of: selection.app, with: rereader)
                : try await retryQuarantine(selection, with: rereader)
        }
    }

    /// Rereads the bad lines of files that stay in the spool because the quarantine could not hold these
    /// lines. Files that have no bad lines left are then removed from the spool.
    private func retryFiles(of app: String?, with rereader: Rereader) async throws -> Int {
        guard let spool else { return 0 }
        let silence = ControlRefusal(503, "later", "the spool's file system does not answer; try again")
        var count = 0
        for (key, path) in queue.snapshot.unkept.sorted(by: { $0.value < $1.value }) {
            let rows = try await queue.unkept(of: key)
            guard let lines = rows.first?.lines, app == nil || app == lines.app else { continue }
            let bytes = Hexadecimal.bytes(key)
            guard let known = await spool.ask({ $0.path(ofFile: bytes) }) else { throw silence }
            let file = "\(spool.figures.root?.path ?? "")/\(known ?? path)"
            if let read = try await rereader.read(file, key, rows, maxEventSize: maxEventSize) {
                count += read
                continue
            }
            // The reader knows the file, but it is not at its path: a rename is under way.
            guard known == nil else {
                throw ControlRefusal(503, "later", "\(path) is being moved; try again")
            }
            log?.warning("a file with bad lines was removed, they are not reread", ["path": path])
            var commit = Commit()
            for row in rows { commit.memory.updateValue(nil, forKey: row.name) }
            _ = try await queue.store(commit)
        }
        guard await spool.ask({ $0.removeReleased() }) != nil else { throw silence }
        return count
    }

    /// Rereads quarantined lines, page by page.
    private func retryQuarantine(_ selection: RecordSelection, with rereader: Rereader) async throws -> Int {
        // A line that is quarantined again gets a greater id. Without this end the loop would reread it for
        // ever.
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

    /// Removes records for good; those of the queue count as discarded.
    ///
    /// - Returns: how many. If one id is unknown nothing is removed.
    func purge(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        for id in selection.ids ?? [] { _ = try await show(store, id) }
        let purged: Int
        if store == .quarantine, let rereader {
            purged = try await rereader.inTurn { [queue] in try await queue.purge(store, selection) }
        } else {
            purged = try await purgeNamed(store, selection)
        }
        if purged > 0 {
            log?.warning("removed by command", ["from": store.rawValue, "count": purged])
        }
        return purged
    }

    /// Purges, with the client's error if the named events are only a part of a batch.
    private func purgeNamed(_ store: RecordStore, _ selection: RecordSelection) async throws -> Int {
        do throws(QueueError) {
            return try await queue.purge(store, selection)
        } catch {
            throw error.code == .misuse
                ? ControlRefusal(409, "in_one_batch", error.message) : error as any Error
        }
    }

    /// Moves what is queued for one destination to another one.
    func move(from source: String, to target: String, _ priority: Priority?) async throws -> MovedEvents {
        do throws(QueueError) {
            return try await queue.move(DestinationName(source), to: DestinationName(target), priority)
        } catch {
            throw error.code == .misuse
                ? ControlRefusal(400, "unknown_destination", error.message) : error as any Error
        }
    }
}
