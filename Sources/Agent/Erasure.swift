internal import Configuration
internal import Containers
internal import Control
internal import EventLoops
internal import Intake
internal import Model
internal import Queue

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
        // What is never searched, and what this condition cannot be compared with.
        var unsearched = unsearched()
        if !condition.namesValues {
            unsearched.append(
                "texts that are no events, data layers, sessions: no member is compared with a plain value"
            )
        }
        return erased.receipt(of: text, isTrial: isTrial, from: begin, to: time.wallTime, unsearched)
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

extension ErasedRecords {
    /// The receipt as JSON, for the answer to a person's request (GDPR, article 17). `not_searched` names the
    /// places that must be searched by hand, and `complete` is false if events escaped the erasure.
    fileprivate func receipt(
        of condition: String, isTrial: Bool, from begin: Timestamp, to end: Timestamp, _ unsearched: [String]
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
            "not_searched": .array(unsearched.map(JSONValue.string)),
            // Damaged chunks cannot be searched, and events in flight may have been delivered.
            "complete": .bool(eventsInFlight == 0 && damagedChunks == 0),
        ]
    }
}

extension Settings {
    /// Places that may hold events and that an erasure leaves alone: unread files, the archive, and copies of
    /// damaged queues.
    var unsearchedPlaces: [String] {
        var places = ["files in \(spool.directory) that are not read yet"]
        if spool.afterRead == .archive {
            places.append("the archive, \(spool.archiveDirectory ?? "\(spool.directory)/.spoolship/archive")")
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
