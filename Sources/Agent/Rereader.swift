internal import EventLoops
internal import Events
internal import Logs
internal import Model
internal import Queue
internal import Spool

/// Reads quarantined lines again, beside the spool: what is an event now is accepted, the rest is quarantined anew.
///
/// It has an intake of its own, because a commit of the spool's must hold just what its checkpoints cover.
actor Rereader {
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let loop: EventLoop
    private let store: QueueStore
    private let time: any TimeSource
    private let log: Log
    private let settings: @Sendable () async -> IntakeSettings

    /// - Parameters:
    ///   - loop: the reader's loop.
    ///   - settings: those in force when lines are read again; sessions are left alone.
    init(
        on loop: EventLoop, store: QueueStore, time: any TimeSource, log: Log,
        settings: @escaping @Sendable () async -> IntakeSettings
    ) {
        self.loop = loop
        self.store = store
        self.time = time
        self.log = log
        self.settings = settings
    }

    /// Reads lines again that were kept whole, in one transaction.
    ///
    /// - Returns: how many were read again; the others stay.
    /// - Throws: `QueueError`, with code `full` when the queue has no room for them now.
    func read(_ records: [StoredQuarantineRecord]) async throws(QueueError) -> Int {
        var settings = await settings()
        settings.events.session.mode = .off
        let intake = Intake(
            settings, store: store, memory: [:], figures: IntakeFigures(), clock: ClockTrust(), on: loop, time: time,
            log: log)
        var ids: [Int64] = []
        for stored in records {
            let record = stored.record
            guard Int64(record.content.count) == record.length, !record.content.isEmpty else { continue }
            let line =
                record.content.last == UInt8(ascii: "\n") ? record.content : record.content + [UInt8(ascii: "\n")]
            let source = SpoolSource(app: record.app, path: record.path, producer: nil)
            line.withUnsafeBytes { _ = intake.take($0, from: source, at: record.offset) }
            ids.append(stored.id)
        }
        var commit = intake.takeCommit()
        commit.requeued = ids
        // Names counted here are counted by the spool's intake too, which remembers them.
        commit.memory = [:]
        guard case .stored = try await store.store(commit) else {
            throw QueueError(.full, "the queue has no room now; try again when it has")
        }
        return ids.count
    }
}
