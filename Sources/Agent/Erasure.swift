internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Queue
internal import Spool

// The erasure of all events that match a condition, wherever the agent stores them (`spoolship erase`).
extension AgentRecords {
    /// How long to wait for events in flight; longer than a request takes. What is still in flight afterwards
    /// is named in the receipt, which then does not say `complete`.
    private static var patience: Duration { .seconds(60) }

    /// Erases the events, and returns the receipt: what was erased where, how many, and when.
    ///
    /// - Parameter isTrial: only counts (`--dry-run`).
    /// - Throws: `ControlRefusal` for an invalid condition.
    func erase(where text: String, isTrial: Bool) async throws -> JSONValue {
        let condition = try relaying(try EventCondition(text)) { (mistake: WrittenRule.Mistake) in
            ControlRefusal.bad("where\(mistake.column.map { ", column \($0)" } ?? ""): \(mistake.message)")
        }
        let begin = time.wallTime
        let places = places
        // Not while lines are reread: a line on its way from the quarantine to the queue is in neither.
        let erased = try await inTurn { [queue, forget] in
            if !isTrial {
                await forget(condition)
            }
            return try await queue.erase(
                ErasureSearch(
                    makeJudge: { condition.makeJudge() }, isMentioned: { condition.isMentioned(in: $0) }),
                isTrial: isTrial, patience: AgentRecords.patience)
        }
        // After the queue: a file that moves to the archive meanwhile was read before.
        var archive = ErasedFiles()
        if let places {
            archive = await ArchiveErasure(
                places.archive, maxEventSize: places.maxEventSize, isTrial: isTrial,
                makeSearch: { condition.makeLineSearch() }
            ).runAside()
            if archive.files > 0, !isTrial {
                log?.warning(
                    "events of the archive erased by command",
                    ["events": archive.events.description, "files": archive.files.description])
            }
        }
        // What is never searched, and what this condition cannot be compared with.
        var unsearched = (places?.unsearched() ?? []) + archive.failed
        if !condition.namesValues {
            unsearched.append(
                "texts that are no events, data layers, sessions: no member is compared with a plain value"
            )
        }
        return erased.receipt(of: text, isTrial: isTrial, from: begin, to: time.wallTime, archive, unsearched)
    }

    /// Runs the erasure after the commands of the quarantine that came before it; at once if no agent runs.
    private func inTurn(
        _ body: @Sendable () async throws -> ErasedRecords
    ) async throws -> ErasedRecords {
        if let rereader {
            try await rereader.inTurn(body)
        } else {
            try await body()
        }
    }
}

extension EventCondition {
    /// Searches the lines of apps' files: objects by the condition, other texts, and objects that hold a name
    /// twice, by the values that the condition names.
    ///
    /// An object is not searched for these values: a number as short as 4711 is in many lines, as a part of
    /// an amount or of a time.
    fileprivate func makeLineSearch() -> (_ line: [UInt8], _ app: String) -> Bool {
        let judge = makeJudge()
        return { line, app in
            guard let value = try? JSONValue(parsing: line), case .object = value else {
                return isMentioned(in: line)
            }
            // Which of two members holds differs between readers; the judge knows one of them.
            return line.withUnsafeBytes { judge($0, app) } || value.repeatsName && isMentioned(in: line)
        }
    }
}

extension JSONValue {
    /// Whether an object in this value holds a name twice.
    fileprivate var repeatsName: Bool {
        switch self {
        case .object(let members):
            Set(members.map(\.key)).count < members.count || members.contains { $0.value.repeatsName }
        case .array(let values): values.contains(where: \.repeatsName)
        default: false
        }
    }
}

extension ArchiveErasure {
    /// Runs on a thread of its own, because an archive may be large; on this one if there can be no other.
    fileprivate func runAside() async -> ErasedFiles {
        guard let thread = try? EventLoop(name: "erasure"), (try? thread.start()) != nil else { return run() }
        return await withCheckedContinuation { continuation in
            thread.post {
                continuation.resume(returning: run())
                thread.stop()
            }
        }
    }
}

/// The files around the queue: the archive, which an erasure searches, and those that it leaves alone.
struct ErasurePlaces: Sendable {
    /// The archive of read files. Also searched if files are not archived any more.
    let archive: String
    /// The longest event in bytes.
    let maxEventSize: Int
    /// Places that an erasure leaves alone, for its receipt.
    let unsearched: @Sendable () -> [String]
}

extension ErasedRecords {
    /// The receipt as JSON, for the answer to a person's request (GDPR, article 17). `not_searched` names the
    /// places that must be searched by hand, and `complete` is false if events escaped the erasure.
    fileprivate func receipt(
        of condition: String, isTrial: Bool, from begin: Timestamp, to end: Timestamp,
        _ archive: ErasedFiles, _ unsearched: [String]
    ) -> JSONValue {
        let deliveries = deliveries.sorted { $0.key.text < $1.key.text }.map { name, count in
            JSONValue.Member(name.text, .integer(count))
        }
        return [
            "where": .string(condition), "dry_run": .bool(isTrial),
            "began": .string(begin.description), "ended": .string(end.description),
            "queue": [
                "events": .integer(events), "deliveries": .object(deliveries),
                "in_flight": .integer(eventsInFlight), "batches_sent_again": .integer(dissolvedBatches),
                "damaged_chunks": .integer(damagedChunks),
            ],
            "dead_letters": ["events": .integer(deadLetters), "answers": .integer(answers)],
            "quarantine": .integer(quarantined), "data_layers": .integer(dataLayers),
            "sessions": .integer(sessions),
            "archive": ["events": .integer(archive.events), "files": .integer(archive.files)],
            "not_searched": .array(unsearched.map(JSONValue.string)),
            // Damaged chunks and files cannot be searched, and events in flight may have been delivered.
            "complete": .bool(eventsInFlight == 0 && damagedChunks == 0 && archive.failures == 0),
        ]
    }
}

extension Settings {
    /// The files around the queue, for an erasure.
    var erasurePlaces: ErasurePlaces {
        ErasurePlaces(
            archive: spool.archiveDirectory ?? "\(spool.directory)/.spoolship/archive",
            maxEventSize: spool.maxEventSize, unsearched: { unsearchedPlaces })
    }

    /// Places that may hold events and that an erasure leaves alone: files of other programs, and copies of
    /// damaged queues.
    private var unsearchedPlaces: [String] {
        // Also what was read of files that are still written: the agent does not change the files of others.
        let backlog = SpoolBacklog.measure(in: spool.directory)
        var places = [
            "\(backlog.files) files of apps in \(spool.directory) (\(backlog.bytes.value) bytes)"
        ]
        for (name, app) in apps.sorted(by: { $0.key < $1.key }) {
            if let patterns = app.read, !patterns.isEmpty {
                places.append("files that are read in place for \(name): \(patterns.joined(separator: ", "))")
            }
            if app.journal.read == true {
                places.append("the journal that is read for \(name)")
            }
        }
        do throws(SystemError) {
            places += try WholeFile.names(in: agent.stateDirectory).filter {
                $0.hasPrefix("queue.sqlite.damaged-")
            }
            .sorted().map { "\(agent.stateDirectory)/\($0)" }
        } catch {
            places.append("damaged copies in \(agent.stateDirectory), which cannot be listed: \(error)")
        }
        return places
    }
}
