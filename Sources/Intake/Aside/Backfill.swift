internal import Containers
internal import Events
package import EventLoops
package import Logs
package import Model
internal import Spool

/// Accepts old files piece by piece, after everything else, and remembers how far each file was read.
///
/// The events of a piece and the place where it ends are stored in one transaction. So the sender may be
/// interrupted at any moment, and resumes where the queue says. It has an intake of its own, because the
/// spool's commits must hold exactly what the spool's checkpoints cover.
package actor Backfill: LoopActor {
    /// Settings that hold for the next piece.
    package struct Options: Sendable {
        package var intake: IntakeSettings
        /// Longest event, in bytes.
        package var maxEventSize: Int
        /// Encodings of the apps' files, where they are set.
        package var encodings: [String: FileEncoding] = [:]
        /// What must be sent first, as a text for a person; nil if nothing. Depends on the destinations of
        /// the old events.
        package var obstacle: @Sendable ([DestinationName]) -> String?

        package init(
            intake: IntakeSettings, maxEventSize: Int,
            obstacle: @escaping @Sendable ([DestinationName]) -> String?
        ) {
            self.intake = intake
            self.maxEventSize = maxEventSize
            self.obstacle = obstacle
        }
    }

    /// Most files that are remembered. Beyond it, the file that was begun longest ago is forgotten, and
    /// could be sent a second time.
    static let mostFiles = 4096
    /// Time between two looks at an obstacle, and most looks: a piece waits for about a second, then the
    /// sender tries again.
    private static let look = Duration.milliseconds(5)
    private static let looks = 200

    package nonisolated let loop: EventLoop
    private let store: any CommitStore
    private let time: any TimeSource
    private let log: Log
    private let figures: IntakeFigures
    /// Gives the settings that are in force.
    private let options: @Sendable () async -> Options
    /// Place up to which each file was read, by the file's key.
    private var places: [String: Place] = [:]
    private let rules: IntakeRules?
    /// Calls of functions that tags of old events ask for.
    private let calls: TagCalls
    /// The intake; made for the first piece.
    private var intake: Intake?
    /// Lets one piece in at a time.
    private let turnstile = Turnstile()
    private var isStopping = false

    /// Place in a file, opaque to the agent, with the time at which it was stored.
    private struct Place {
        var seconds: Int64
        var text: String

        var encoded: [UInt8] { withUnsafeBytes(of: seconds.littleEndian) { Array($0) } + Array(text.utf8) }
    }

    /// A backfill that continues at the position in the queue.
    ///
    /// - Parameters:
    ///   - memory: the queue's memory; entries of other owners are ignored.
    ///   - rules: the spool's rules. Old events pass them like all others, and change no data layer.
    ///   - options: gives the settings in force, once for each piece.
    package init(
        on loop: EventLoop, store: any CommitStore, memory: [String: [UInt8]], rules: IntakeRules? = nil,
        figures: IntakeFigures, time: any TimeSource, log: Log,
        options: @escaping @Sendable () async -> Options
    ) {
        self.loop = loop
        self.store = store
        self.time = time
        self.log = log
        self.figures = figures
        self.options = options
        self.rules = rules
        // A piece is stored as a whole, so its calls have no bound; between two pieces `take` waits until few
        // are left.
        calls = TagCalls(rules?.functions, aside: "backfill", most: .max)
        calls.start(calls.restore(memory), on: loop)
        for (name, bytes) in memory where name.hasPrefix(Backfill.prefix) && bytes.count > 8 {
            places[String(name.dropFirst(Backfill.prefix.count))] = Place(
                seconds: Int64(
                    bitPattern: bytes[0..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }),
                text: String(decoding: bytes[8...], as: UTF8.self))
        }
    }

    /// Prefix of the rows' keys in the queue's memory.
    private static let prefix = "backfill/"

    /// Refuses further pieces: the agent stops.
    package func stop() { isStopping = true }

    /// What the sender needs to know of a file: the place up to which it was read (nil if nothing was), the
    /// most bytes of lines in the next piece (a single event may be larger), the most bytes of an event,
    /// the format in which the app's lines are wrapped, and the encoding of its files.
    package func state(
        of key: String, app: String? = nil
    ) async -> (
        place: String?, pieceBytes: Int, maxEventSize: Int, format: LineWrapper?, encoding: FileEncoding?
    ) {
        let options = await options()
        let format = app.flatMap { options.intake.events.apps[$0]?.format }
        // Small in a small queue: a piece must fit, together with the members that are added to its events.
        return (
            places[key]?.text, min(256 << 10, max(256, options.intake.cap / 64)), options.maxEventSize,
            format,
            app.flatMap { options.encodings[$0] }
        )
    }

    /// Takes a piece and its place, durably and together, or nothing of it. Returns what became of its lines.
    package func take(_ piece: BackfillPiece) async throws(IntakeError) -> IntakeLedger {
        let ticket = turnstile.drawTicket()
        await turnstile.takeTurn(ticket)
        defer { turnstile.passTurn() }
        let options = await options()
        guard options.intake.isCollecting else {
            throw IntakeError(.disabled, "collection is disabled; run `spoolship enable`")
        }
        let route = options.intake.routes[options.intake.routeIndex(of: piece.app)]
        rules?.refresh()
        // A tag may name destinations although the configuration names none.
        guard !route.destinations.isEmpty || rules?.isIdle == false else {
            throw IntakeError(.noDestination, "no destination wants the events of \(piece.app)")
        }
        guard piece.from == places[piece.key]?.text else {
            throw IntakeError(
                .elsewhere, "\(piece.file) has since been read to another place; is it being read twice?")
        }
        try await waitForDocument(of: piece.app)
        try await wait { options.obstacle(route.destinations) }
        // Calls that tags of earlier pieces have asked for.
        try await wait { calls.count < Backfill.mostCalls ? nil : "\(calls.count) calls of functions wait" }
        return try await store(piece, options)
    }

    /// Returns once the containers that must rule these events do.
    private func waitForDocument(of app: String) async throws(IntakeError) {
        try await wait {
            rules?.refresh()
            return rules?.awaited(for: app).map {
                "events of \(app) wait for a document of the container \($0.id)"
            }
        }
    }

    /// Returns once there is no obstacle; throws `later` after about a second, so that the request does not
    /// hang.
    private func wait(for obstacle: () async throws(IntakeError) -> String?) async throws(IntakeError) {
        var looks = 0
        while true {
            guard !isStopping else {
                throw IntakeError(
                    .stopping, "the agent is stopping; the same command resumes where this one ended")
            }
            guard let found = try await obstacle() else { return }
            guard looks < Backfill.looks else { throw IntakeError(.later, found) }
            looks += 1
            await withCheckedContinuation { continuation in
                _ = loop.after(Backfill.look) { continuation.resume() }
            }
        }
    }

    /// Number of waiting calls from which a piece waits.
    private static let mostCalls = 32

    /// Stores a piece and its place in one transaction.
    private func store(_ piece: BackfillPiece, _ options: Options) async throws(IntakeError) -> IntakeLedger {
        var commit = try await read(piece, with: intake(for: options))
        // Old events do not expire by age, so their chunks get a time that is never past.
        for index in commit.chunks.indices {
            commit.chunks[index].eventTimes =
                commit.chunks[index].eventTimes.lowerBound...Timestamp(nanoseconds: .max)
        }
        let made = calls.takeNew()
        // Calls are made only if the transaction has stored them.
        var isStored = false
        defer { if isStored { calls.start(made) } else { calls.forget(made) } }
        let place = Place(seconds: time.wallTime.milliseconds / 1000, text: piece.content.end)
        commit.memory[Backfill.prefix + piece.key] = place.encoded
        var forgotten: String?
        if places[piece.key] == nil, places.count >= Backfill.mostFiles {
            forgotten = places.min { $0.value.seconds < $1.value.seconds }?.key
        }
        if let forgotten {
            commit.memory.updateValue(nil, forKey: Backfill.prefix + forgotten)
        }
        var refused = 0
        try await wait { () throws(IntakeError) in
            guard let found = try await store.storeOnce(commit) else { return "the queue has no room now" }
            refused = found
            return nil
        }
        isStored = true
        places[piece.key] = place
        if let forgotten {
            places[forgotten] = nil
        }
        var result = IntakeLedger()
        result.read = commit.read
        result.refused = commit.refused + refused
        result.quarantined = commit.quarantined.count { $0.reason != .refused }
        result.accepted = result.read - result.refused - result.quarantined
        return result
    }

    /// Makes a commit of a piece: of its lines, or of one record for the quarantine.
    private func read(_ piece: BackfillPiece, with intake: Intake) async throws(IntakeError) -> Commit {
        let source = SpoolSource(app: piece.app, path: piece.file, producer: nil)
        let content = piece.content
        if let problem = content.problem {
            intake.quarantine(
                QuarantineRecord(
                    reason: problem.reason, detail: problem.detail, app: piece.app, path: piece.file,
                    offset: content.offset, length: problem.length, content: content.bytes,
                    time: time.wallTime))
            return intake.takeCommit()
        }
        let before = intake.counts
        let taken = await intake.takeAside(content.bytes[...], from: source, at: content.offset)
        guard taken < content.bytes.count else { return intake.takeCommit() }
        // The intake stopped within the piece, so nothing of the piece is stored. Either the required
        // document of a container is gone, or the piece does not fit into one transaction: an event is as
        // large as one may be, or many lines go to the quarantine. The sender then offers less.
        let obstacle = intake.obstacle
        intake.giveBack(to: before)
        try await waitForDocument(of: piece.app)
        if case .document = obstacle {
            throw IntakeError(.later, "another document has come into force")
        }
        throw IntakeError(
            .tooLarge,
            "the events at byte \(content.offset) of \(piece.file) do not fit into one transaction of this "
                + "queue; raise queue.max_size")
    }

    /// The intake with the settings in force.
    private func intake(for options: Options) -> Intake {
        guard let intake else {
            let made = Intake(
                options.intake, .backfill, store: store, figures: figures, clock: ClockTrust(), rules: rules,
                calls: calls, on: loop, time: time, log: log)
            intake = made
            return made
        }
        if intake.settings != options.intake {
            intake.configure(options.intake)
        }
        return intake
    }
}
