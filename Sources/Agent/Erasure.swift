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
        // Not while lines are reread: a line on its way from the quarantine to the queue is in neither. Nor
        // beside another erasure, which would replace the same archived files.
        let files = try await inTurn { [queue, forget, places] in
            if !isTrial {
                await forget(condition)
            }
            let erased = try await queue.erase(
                ErasureSearch(
                    makeJudge: { condition.makeJudge() }, isMentioned: { condition.isMentioned(in: $0) }),
                isTrial: isTrial, patience: AgentRecords.patience)
            // After the queue: a file that moves to the archive meanwhile was read before.
            var files = try await places?.erase(condition, isTrial: isTrial) ?? ErasedPlaces()
            files.records = erased
            return files
        }
        if files.archive.files > 0, !isTrial {
            log?.warning(
                "events of the archive erased by command",
                ["events": files.archive.events.description, "files": files.archive.files.description])
        }
        // What is never searched, and what this condition cannot be compared with.
        var unsearched = files.unsearched + files.archive.failed
        if !condition.namesValues {
            unsearched.append(
                "texts that are no events, data layers, sessions: no member is compared with a plain value"
            )
        }
        return files.records.receipt(
            of: text, isTrial: isTrial, from: begin, to: time.wallTime, files, unsearched)
    }

    /// Runs the erasure after the commands of the quarantine that came before it; at once if no agent runs.
    private func inTurn<Value: Sendable>(
        _ body: @Sendable () async throws -> Value
    ) async throws -> Value {
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
    /// An event is not searched for these values: a number as short as 4711 is in many lines, as a part of
    /// an amount or of a time. A push is, as the data layer that it went into: its members have other paths.
    fileprivate func makeLineSearch() -> (_ line: [UInt8], _ app: String) -> Bool {
        let judge = makeJudge()
        return { line, app in
            guard let value = try? JSONValue(parsing: line), case .object = value else {
                return isMentioned(in: line)
            }
            // Which of two members holds differs between readers; the judge knows one of them. Pushes also in
            // apps whose `kind` is log now: it may change at any reload, and a push that was archived before
            // would stay, with a receipt that says `complete`.
            let isSearched = value.repeatsName || value["type"]?.string == "data_layer"
            return line.withUnsafeBytes { judge($0, app) } || isSearched && isMentioned(in: line)
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

/// The files around the queue: the archive, which an erasure searches, and those that it leaves alone.
struct ErasurePlaces: Sendable {
    /// The archive of read files. Also searched if files are not archived any more.
    let archive: String
    /// The longest event in bytes.
    let maxEventSize: Int
    /// Places that an erasure leaves alone, and whether files are on their way to the archive.
    fileprivate let look: @Sendable () -> ErasedPlaces

    /// Erases events from the archive. On a thread of its own, because the archive may be large and file
    /// systems may not answer.
    ///
    /// - Throws: `ControlRefusal` if there is no thread. What the queue held is erased by then, and the same
    ///   erasure may be run again.
    fileprivate func erase(_ condition: EventCondition, isTrial: Bool) async throws -> ErasedPlaces {
        let work = { @Sendable in
            // Before the archive is searched: a file may move into a folder that was searched.
            var places = look()
            places.archive = ArchiveErasure(
                archive, maxEventSize: maxEventSize, isTrial: isTrial,
                makeSearch: { condition.makeLineSearch() }
            ).run()
            return places
        }
        let thread: EventLoop
        do throws(SystemError) {
            thread = try EventLoop(name: "erasure")
            try thread.start()
        } catch {
            throw ControlRefusal(503, "later", "the archive was not searched: no thread for it, \(error)")
        }
        return await withCheckedContinuation { continuation in
            thread.post {
                continuation.resume(returning: work())
                thread.stop()
            }
        }
    }
}

/// What an erasure did to the queue and to the files around it.
private struct ErasedPlaces: Sendable {
    var records = ErasedRecords()
    var archive = ErasedFiles()
    /// Places that it left alone.
    var unsearched: [String] = []
    /// Whether files were on their way to the archive, and may have missed the search.
    var isArchiving = false
}

extension ErasedRecords {
    /// The receipt as JSON, for the answer to a person's request (GDPR, article 17). `not_searched` names the
    /// places that must be searched by hand, and `complete` is false if events escaped the erasure.
    fileprivate func receipt(
        of condition: String, isTrial: Bool, from begin: Timestamp, to end: Timestamp,
        _ files: ErasedPlaces, _ unsearched: [String]
    ) -> JSONValue {
        let archive = files.archive
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
            "complete": .bool(
                eventsInFlight == 0 && damagedChunks == 0 && archive.failures == 0 && !files.isArchiving),
        ]
    }
}

extension Settings {
    /// The files around the queue, for an erasure.
    var erasurePlaces: ErasurePlaces {
        ErasurePlaces(
            archive: spool.archiveDirectory ?? "\(spool.directory)/.spoolship/archive",
            maxEventSize: spool.maxEventSize, look: { unsearchedPlaces })
    }

    /// Places that may hold events and that an erasure leaves alone: files of other programs, and copies of
    /// damaged queues.
    private var unsearchedPlaces: ErasedPlaces {
        // Also what was read of files that are still written: the agent does not change the files of others.
        let directory = spool.directory
        let backlog = SilentFiles.answer(about: directory) { SpoolBacklog.measure(in: directory) }
        var places: [String] = []
        if let backlog {
            let least = backlog.isWhole ? "" : "at least "
            places.append(
                "\(least)\(backlog.files) files of apps in \(directory) (\(backlog.bytes.value) bytes)")
        } else {
            places.append("files of apps in \(directory), which does not answer")
        }
        let isArchiving = spool.afterRead == .archive && (backlog?.claims ?? 0) > 0
        if isArchiving {
            places.append("files that are being read and will be archived: run it again")
        }
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
        return ErasedPlaces(unsearched: places, isArchiving: isArchiving)
    }
}
