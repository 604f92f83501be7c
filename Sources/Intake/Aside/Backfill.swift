internal import Containers
internal import Events
package import EventLoops
package import Logs
package import Model
internal import Spool

/// Accepts old files piece by piece, after everything else, and remembers how far each was read.
///
/// A piece's events and the place where it ends go into one transaction: the sender may be interrupted at any moment
/// and resumes where the queue says. It has a separate intake, because the spool's commits must hold exactly what its checkpoints cover.
package actor Backfill: LoopActor {
    package struct Options: Sendable {
        package var intake: IntakeSettings
        /// The longest event, in bytes.
        package var maxEventSize: Int
        /// What goes first, for a person; nil if nothing does. The destinations of the old events decide.
        package var obstacle: @Sendable ([DestinationName]) -> String?

        package init(
            intake: IntakeSettings, maxEventSize: Int, obstacle: @escaping @Sendable ([DestinationName]) -> String?
        ) {
            self.intake = intake
            self.maxEventSize = maxEventSize
            self.obstacle = obstacle
        }
    }

    /// Files that are remembered; of more, those that were taken up longest ago are forgotten.
    static let mostFiles = 4096
    /// How often the gate is looked at while a piece waits, and how long one waits at most.
    private static let look = Duration.milliseconds(5)
    private static let looks = 200

    package nonisolated let loop: EventLoop
    private let store: any CommitStore
    private let time: any TimeSource
    private let log: Log
    private let figures: IntakeFigures
    private let options: @Sendable () async -> Options
    private var places: [String: Place] = [:]
    private let rules: IntakeRules?
    private let calls: TagCalls
    private var intake: Intake?
    private let turn = Turnstile()
    private var isStopping = false

    private struct Place {
        var seconds: Int64
        var text: String

        var encoded: [UInt8] { withUnsafeBytes(of: seconds.littleEndian) { Array($0) } + Array(text.utf8) }
    }

    /// A backfill that goes on where the queue says.
    ///
    /// - Parameters:
    ///   - memory: what the queue has kept; entries of others are left alone.
    ///   - rules: the spool's, which these events pass like all others; they change no data layer.
    package init(
        on loop: EventLoop, store: any CommitStore, memory: [String: [UInt8]], rules: IntakeRules? = nil,
        figures: IntakeFigures, time: any TimeSource, log: Log,
        options: @escaping @Sendable () async -> Options
    ) {
        (self.loop, self.store, self.time, self.log) = (loop, store, time, log)
        (self.figures, self.options, self.rules) = (figures, options, rules)
        // A piece is stored as a whole: `waitForCalls` bounds them between two.
        calls = TagCalls(rules?.functions, aside: "backfill", most: .max)
        calls.start(calls.restore(memory), on: loop)
        for (name, bytes) in memory where name.hasPrefix(Backfill.prefix) && bytes.count > 8 {
            places[String(name.dropFirst(Backfill.prefix.count))] = Place(
                seconds: Int64(bitPattern: bytes[0..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }),
                text: String(decoding: bytes[8...], as: UTF8.self))
        }
    }

    private static let prefix = "backfill/"

    package func stop() { isStopping = true }

    /// How far a file has been taken, nil where nothing of it was; how many bytes of lines the next piece should have at most, a
    /// single event excepted; how many an event may have; and what the app's lines are wrapped in.
    package func state(
        of key: String, app: String? = nil
    ) async -> (place: String?, pieceBytes: Int, maxEventSize: Int, format: LineFormat?) {
        let options = await options()
        let format = app.flatMap { options.intake.events.apps[$0]?.format }
        // Small in a small queue: a piece must fit, with what is added to its events.
        return (places[key]?.text, min(256 << 10, max(256, options.intake.cap / 64)), options.maxEventSize, format)
    }

    /// Takes a piece and how far it reaches, durably and together, or nothing of it.
    package func take(_ piece: BackfillPiece) async throws(IntakeError) -> IntakeLedger {
        let ticket = turn.drawTicket()
        await turn.takeTurn(ticket)
        defer { turn.passTurn() }
        let options = await options()
        guard options.intake.isCollecting else {
            throw IntakeError(.disabled, "collection is disabled; run `spoolship enable`")
        }
        let route = options.intake.routes[options.intake.routeIndex(of: piece.app)]
        rules?.refresh()
        // A tag may name destinations where the configuration names none.
        guard !route.destinations.isEmpty || rules?.isIdle == false else {
            throw IntakeError(.noDestination, "no destination wants the events of \(piece.app)")
        }
        guard piece.from == places[piece.key]?.text else {
            throw IntakeError(
                .elsewhere, "\(piece.file) has since been read to another place; is it being read twice?")
        }
        try await waitForDocument(of: piece.app)
        try await wait { options.obstacle(route.destinations) }
        // Those that tags of earlier pieces have asked for.
        try await wait { calls.count < Backfill.mostCalls ? nil : "\(calls.count) calls of functions wait" }
        return try await store(piece, options)
    }

    /// Returns once the containers that must rule these events do.
    private func waitForDocument(of app: String) async throws(IntakeError) {
        try await wait {
            rules?.refresh()
            return rules?.awaited(for: app).map { "events of \(app) wait for a document of the container \($0.id)" }
        }
    }

    private func wait(for obstacle: () -> String?) async throws(IntakeError) {
        var looks = 0
        while true {
            guard !isStopping else {
                throw IntakeError(.stopping, "the agent is stopping; the same command resumes where this one ended")
            }
            guard let found = obstacle() else { return }
            guard looks < Backfill.looks else { throw IntakeError(.later, found) }
            looks += 1
            await pause()
        }
    }

    private static let mostCalls = 32

    private func pause() async {
        await withCheckedContinuation { continuation in
            _ = loop.after(Backfill.look) { continuation.resume() }
        }
    }

    private func store(_ piece: BackfillPiece, _ options: Options) async throws(IntakeError) -> IntakeLedger {
        var commit = try await read(piece, with: intake(for: options))
        // Old as they are, they never are too old.
        for index in commit.chunks.indices {
            commit.chunks[index].eventTimes = commit.chunks[index].eventTimes.lowerBound...Timestamp(nanoseconds: .max)
        }
        let made = calls.takeNew()
        var isStored = false
        defer { if isStored { calls.start(made) } else { calls.forget(made) } }
        let place = Place(seconds: time.wallTime.milliseconds / 1000, text: piece.content.end)
        commit.memory[Backfill.prefix + piece.key] = place.encoded
        var forgotten: String?
        if places[piece.key] == nil, places.count >= Backfill.mostFiles {
            forgotten = places.min { $0.value.seconds < $1.value.seconds }?.key
        }
        if let forgotten { commit.memory.updateValue(nil, forKey: Backfill.prefix + forgotten) }
        for _ in 0..<Backfill.looks {
            let result: StoreResult
            do {
                result = try await store.store(commit)
            } catch {
                throw IntakeError(storing: error)
            }
            switch result {
            case .wait: await pause()
            case .stored(let refused):
                isStored = true
                places[piece.key] = place
                if let forgotten { places[forgotten] = nil }
                var result = IntakeLedger()
                result.read = commit.read
                result.refused = commit.refused + refused
                result.quarantined = commit.quarantined.count { $0.reason != .refused }
                result.accepted = result.read - result.refused - result.quarantined
                return result
            }
        }
        throw IntakeError(.later, "the queue has no room now")
    }

    /// Makes a commit of a piece, events or a record for the quarantine.
    private func read(_ piece: BackfillPiece, with intake: Intake) async throws(IntakeError) -> Commit {
        let source = SpoolSource(app: piece.app, path: piece.file, producer: nil)
        let content = piece.content
        if let problem = content.problem {
            intake.quarantine(
                QuarantineRecord(
                    reason: problem.reason, detail: problem.detail, app: piece.app, path: piece.file,
                    offset: content.offset, length: problem.length, content: content.bytes, time: time.wallTime))
            return intake.takeCommit()
        }
        let taken = await intake.takeAside(content.bytes[...], from: source, at: content.offset)
        let commit = intake.takeCommit()
        guard taken < content.bytes.count else { return commit }
        // Only an event that wants its own commit ends here, and a piece is cut smaller than that; or the document
        // that must rule it has gone meanwhile.
        calls.forget(calls.takeNew())
        try await waitForDocument(of: piece.app)
        if case .document = intake.obstacle {
            throw IntakeError(.later, "another document has come into force")
        }
        throw IntakeError(.tooLarge, "the piece is too large for this queue")
    }

    private func intake(for options: Options) -> Intake {
        guard let intake else {
            let made = Intake(
                options.intake, .backfill, store: store, figures: figures, clock: ClockTrust(), rules: rules,
                calls: calls, on: loop, time: time, log: log)
            intake = made
            return made
        }
        if intake.settings != options.intake { intake.configure(options.intake) }
        return intake
    }
}
