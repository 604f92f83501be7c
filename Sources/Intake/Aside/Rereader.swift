internal import Containers
public import EventLoops
internal import Events
public import Logs
public import Model
internal import Spool

/// Reads quarantined lines again, beside the spool: what is an event now is accepted, the rest is quarantined anew.
///
/// It has an intake of its own, because a commit of the spool's must hold just what its checkpoints cover.
public actor Rereader {
    /// The reader's loop.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let loop: EventLoop
    private let store: any CommitStore
    private let time: any TimeSource
    private let log: Log
    private let rules: IntakeRules?
    private let calls: TagCalls
    private let settings: @Sendable () async -> IntakeSettings
    private let turn = Turnstile()

    /// A reader of lines that were kept.
    ///
    /// - Parameters:
    ///   - loop: the reader's loop.
    ///   - memory: what the queue has kept; entries of others are left alone.
    ///   - rules: the spool's, which these events pass like all others; they change no data layer.
    ///   - settings: those in force when lines are read again; sessions are left alone.
    public init(
        on loop: EventLoop, store: any CommitStore, memory: [String: [UInt8]] = [:], rules: IntakeRules? = nil,
        time: any TimeSource, log: Log, settings: @escaping @Sendable () async -> IntakeSettings
    ) {
        self.loop = loop
        self.store = store
        self.time = time
        self.log = log
        self.rules = rules
        self.settings = settings
        calls = .aside(rules?.functions, name: "reread")
        calls.start(calls.restore(memory), on: loop)
    }

    /// Reads lines again that were kept whole: each leaves the quarantine in the transaction that holds what became of it.
    ///
    /// - Returns: how many were read again; the others stay.
    /// - Throws: `IntakeError`, with code `full` when the queue has no room for them now; what was read before stays read.
    public func read(_ records: [(id: Int64, record: QuarantineRecord)]) async throws(IntakeError) -> Int {
        let ticket = turn.drawTicket()
        await turn.takeTurn(ticket)
        defer { turn.passTurn() }
        var settings = await settings()
        settings.events.session.mode = .off
        let intake = Intake(
            settings, store: store, memory: [:], figures: IntakeFigures(), clock: ClockTrust(), rules: rules,
            asideCalls: calls, on: loop, time: time, log: log)
        var ids: [Int64] = []
        var count = 0
        rules?.refresh()
        for (id, record) in records {
            if let awaited = rules?.awaited(for: record.app) {
                _ = try await store(intake, &ids)
                throw IntakeError(.full, "events of \(record.app) wait for a document of the container \(awaited.id)")
            }
            guard Int64(record.content.count) == record.length, !record.content.isEmpty else { continue }
            let line =
                record.content.last == UInt8(ascii: "\n") ? record.content : record.content + [UInt8(ascii: "\n")]
            let source = SpoolSource(app: record.app, path: record.path, producer: nil)
            var taken = 0
            while taken < line.count {
                let more = line[taken...].withUnsafeBytes {
                    intake.take($0, from: source, at: record.offset + Int64(taken))
                }
                taken += more
                if more > 0 { continue }
                if await intake.waitForRules() { continue }
                // It wants a commit of its own, or calls of functions do: what came before goes first.
                guard !ids.isEmpty || taken > 0 else { break }
                count += try await store(intake, &ids)
            }
            if taken == line.count { ids.append(id) }
        }
        return try await count + store(intake, &ids)
    }

    private func store(_ intake: Intake, _ ids: inout [Int64]) async throws(IntakeError) -> Int {
        var commit = intake.takeCommit()
        let made = calls.takeNew()
        guard commit.read > 0 else { return 0 }
        commit.requeued = ids
        let result: StoreResult
        do {
            result = try await store.store(commit)
        } catch {
            calls.forget(made)
            throw IntakeError(storing: error)
        }
        guard case .stored = result else {
            calls.forget(made)
            throw IntakeError(.full, "the queue has no room now; try again when it has")
        }
        calls.start(made)
        defer { ids = [] }
        return ids.count
    }
}
