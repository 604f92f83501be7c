internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Spool
internal import Synchronization

/// The reader of the spool or of a directory of `read`, which runs on the loop *reader* while the path leads
/// to a disk of this machine, and on the loop of a mount that may never answer (`MountLoops`) otherwise.
///
/// A reader does not change its loop: it is stopped at a commit, and another one continues from what the
/// queue has stored. Its intake stays where it is. Nobody waits for a file system that hangs: calls are
/// posted to the reader's loop, and figures are those that were published last.
actor MovableReader: LoopActor {
    nonisolated let loop: EventLoop
    /// What is read in place; nil for the spool.
    nonisolated let place: ReadPlace?
    nonisolated let intake: LoopBound<Intake>
    private let log: Log
    private let loops: MountLoops
    private nonisolated let current: Mutex<Current>
    /// Makes a reader for a loop, with what the queue has stored. On that loop; it may wait for the file
    /// system.
    private let make: Maker
    /// What the queue has stored by now.
    private let restore: @Sendable () async throws -> SpoolStart
    private var phase = Phase.waiting
    /// True while a reader is being replaced; a second replacement must not begin meanwhile.
    private var isMoving = false
    /// Whether a commit was asked for before there was a reader.
    private var wantsCommit = false
    /// Why the first reader of the spool could not be made while the start waited for it.
    private var firstFailure: (any Error)?
    /// True once the start has continued without the spool, whose file system did not answer in time.
    private var isLate = false
    /// The beginnings of records, if they were changed since the start.
    private var joined: (text: Bool, records: RecordStart?)?

    typealias Maker = @Sendable (MountLoops.Home, SpoolStart) throws -> SpoolReader

    private enum Phase { case waiting, reading, stopping }

    private struct Current {
        /// The reader; nil until the file system of the spool has answered.
        var reader: SpoolReader?
        /// The mount whose loop it runs on; nil on the loop *reader*.
        var home: MountLoops.Home?
        /// What earlier readers have counted: counters never go back.
        var past = SpoolFigures()
        /// Why the spool is not read; nil if it is, or if its file system has not answered.
        var problem: String?
    }

    /// - Parameters:
    ///   - reader: the first reader, on the loop *reader*; nil if `open` makes it on a mount's loop.
    ///   - loop: the loop *reader*.
    init(
        _ reader: SpoolReader?, of place: ReadPlace? = nil, intake: LoopBound<Intake>, on loop: EventLoop,
        loops: MountLoops, log: Log, restore: @escaping @Sendable () async throws -> SpoolStart,
        make: @escaping Maker
    ) {
        self.loop = loop
        self.place = place
        self.intake = intake
        self.loops = loops
        self.log = log
        self.make = make
        self.restore = restore
        current = Mutex(Current(reader: reader))
    }

    // MARK: From any thread

    /// The present reader; nil if its file system has not answered since the start.
    nonisolated var reader: SpoolReader? { current.withLock(\.reader) }

    /// The loop of the mount that it is on; nil for a disk of this machine.
    nonisolated var home: MountLoops.Home? { current.withLock(\.home) }

    /// Why the spool is not read although its file system answers; nil if it is read.
    nonisolated var problem: String? { current.withLock(\.problem) }

    /// True while the file system does not answer.
    nonisolated var isSilent: Bool { loops.isSilent(home) }

    /// The figures that were published last. Those of a file system that does not answer say so.
    nonisolated var figures: SpoolFigures {
        let present = current.withLock(\.self)
        var figures = (present.reader?.figures ?? SpoolFigures()).adding(present.past)
        guard isSilent else { return figures }
        if let path = place?.root {
            figures.complaints = [
                SpoolComplaint(
                    path: path, owner: 0, ownerName: "root",
                    advice: "its file system does not answer; everything else is read")
            ]
        }
        // It waits for its file system, not for a commit.
        figures.isHeldBack = false
        return figures
    }

    // MARK: Life

    /// Begins to read, or will as soon as there is a reader.
    func start() {
        guard phase == .waiting else { return }
        phase = .reading
        begin()
    }

    private func begin() {
        guard phase == .reading, let reader else { return }
        reader.loop.post { reader.assumeIsolated { $0.start() } }
        if wantsCommit {
            wantsCommit = false
            commitSoon()
        }
    }

    /// Ends reading at commits. A reader whose file system may never answer is waited for only until `limit`
    /// is over; what it had not committed is read again after the next start.
    func stop(atMost limit: Duration) async {
        phase = .stopping
        let present = current.withLock(\.self)
        guard let reader = present.reader else { return }
        guard let home = present.home else { return await reader.stop() }
        if await !wait(atMost: limit, for: { await reader.stop() }) {
            log.warning(
                "a file system does not answer: the rest of its lines is read after the next start",
                ["mount": home.mount.path])
        }
    }

    /// Sets which lines are handed over together from now on.
    func join(text: Bool, records: RecordStart?) {
        joined = (text, records)
        applyJoined()
    }

    private func applyJoined() {
        guard let reader, let joined else { return }
        reader.loop.post { reader.assumeIsolated { $0.join(text: joined.text, records: joined.records) } }
    }

    /// Begins a commit soon, for what the intake has taken from elsewhere.
    func commitSoon() {
        guard let reader, !isMoving else { return wantsCommit = true }
        reader.loop.post { reader.assumeIsolated { $0.commitSoon() } }
    }

    /// Asks the reader.
    ///
    /// - Returns: nil if its file system does not answer within five seconds, or has not since the start.
    nonisolated func ask<Value: Sendable>(
        _ question: @escaping @Sendable (isolated SpoolReader) -> Value
    ) async -> Value? {
        guard let reader, !isSilent else { return nil }
        let answer = Answer<Value>()
        let isInTime = await wait(atMost: .seconds(5)) {
            await withCheckedContinuation { continuation in
                reader.loop.post {
                    let value = reader.assumeIsolated(question)
                    answer.value.withLock { $0 = value }
                    continuation.resume()
                }
            }
        }
        return isInTime ? answer.value.withLock(\.self) : nil
    }

    private final class Answer<Value: Sendable>: Sendable {
        let value = Mutex<Value?>(nil)
    }

    // MARK: Mounts

    /// How long after a failure another reader is made.
    private static let retry = Duration.seconds(10)

    /// The path leads to a mount that may never answer: another reader continues on its loop.
    ///
    /// - Parameter wasRead: whether another directory was read until now. What is left in its open files is
    ///   read first.
    func move(to mount: DistantMount, wasRead: Bool) {
        guard !isMoving, phase == .reading, home?.mount != mount else { return }
        isMoving = true
        _ = loop.after(wasRead ? MovableReader.retry : .zero) {
            Task(executorPreference: self.loop) { await self.replace(for: mount) }
        }
    }

    private func replace(for mount: DistantMount) async {
        guard phase == .reading else { return }
        var joined: MountLoops.Home?
        do {
            let home = try loops.join(mount)
            joined = home
            await reader?.stop()
            let start = try await restore()
            guard phase == .reading else { return loops.leave(home) }
            let new = try make(home, start)
            let old = current.withLock { current in
                let old = current
                let past = old.reader.map { old.past.adding($0.figures.counters) } ?? old.past
                current = Current(reader: new, home: home, past: past)
                return old.home
            }
            if let old {
                loops.leave(old)
            }
            isMoving = false
            applyJoined()
            begin()
        } catch {
            if let joined {
                loops.leave(joined)
            }
            log.error("directory is not read", ["mount": mount.path, "reason": "\(error)"])
            _ = loop.after(MovableReader.retry) {
                Task(executorPreference: self.loop) { await self.replace(for: mount) }
            }
        }
    }

    /// Makes the first reader of a spool whose file system may never answer, on the loop of its mount.
    ///
    /// - Parameter limit: how long its file system is waited for. The start goes on without it after that,
    ///   and reading begins when it answers.
    /// - Throws: the error of the maker, if it came in time. A later one is shown, and another try made.
    func open(on mount: DistantMount, from start: SpoolStart, atMost limit: Duration) async throws {
        let home = try loops.join(mount)
        current.withLock { $0.home = home }
        let isInTime = await wait(atMost: limit) { await self.makeFirst(home, start) }
        if let firstFailure { throw firstFailure }
        if !isInTime {
            isLate = true
            log.error(
                "the spool's file system does not answer: it is read once it does, everything else is read",
                ["mount": mount.path])
        }
    }

    /// Makes the first reader, however long its file system takes.
    private func makeFirst(_ home: MountLoops.Home, _ start: SpoolStart) async {
        let made = await withCheckedContinuation { continuation in
            home.loop.post { [make] in continuation.resume(returning: Result { try make(home, start) }) }
        }
        switch made {
        case .success(let reader):
            current.withLock { ($0.reader, $0.problem) = (reader, nil) }
            applyJoined()
            begin()
        case .failure(let error):
            guard isLate else { return firstFailure = error }
            guard phase != .stopping else { return }
            current.withLock { $0.problem = "\(error)" }
            log.error("the spool is not read", ["reason": "\(error)"])
            _ = loop.after(MovableReader.retry) {
                Task(executorPreference: self.loop) { await self.makeFirst(home, start) }
            }
        }
    }
}
