internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Queue
internal import Spool
internal import Synchronization

/// What the start has taken of the spool: at once, or when the spool's file system answers. From any thread.
final class SpoolClaim: Sendable {
    struct Taken: Sendable {
        /// The lock; nil if the spool cannot be written.
        let lock: SpoolLock?
        /// Whether the spool has no `.spoolship` yet.
        let isNew: Bool
    }

    private let state = Mutex<(taken: Taken?, then: (@Sendable (Taken) -> Void)?)>((nil, nil))

    /// What was taken; nil as long as the file system has not answered.
    var taken: Taken? { state.withLock(\.taken) }

    func take(_ taken: Taken) {
        let then = state.withLock { state in
            state.taken = taken
            return state.then.take()
        }
        then?(taken)
    }

    /// Calls `body` once the spool is taken, at once if it is.
    func whenTaken(_ body: @escaping @Sendable (Taken) -> Void) {
        let taken = state.withLock { state in
            if state.taken == nil {
                state.then = body
            }
            return state.taken
        }
        if let taken {
            body(taken)
        }
    }
}

/// Publishes to writers, in a file in the spool's `.spoolship`, what the agent accepts now, and keeps the
/// spool's lock, which is in the same directory. Without the file an app could not tell a full queue from a
/// healthy agent.
///
/// May be called from any thread. Files are written on the loop of the spool's reader, because a slow disk of
/// the spool must not delay a commit.
final class WritersNotice: MetricCollector, Sendable {
    /// The known and the published state; under the lock of `state`.
    private struct State {
        /// What the queue accepts; nil until the queue has said so.
        var accepting: QueueSnapshot.Accepting?
        /// False while collection is disabled: apps are then told to write nothing.
        var isCollecting: Bool
        /// The state to publish, or the one published last.
        var told: SpoolState?
        /// How often the file could not be written, for metrics.
        var failures = 0
        /// Whether the loop was asked to write the state and has not begun.
        var isAwaited = false
        /// True if the last write failed; a series of failures is logged once.
        var hasFailed = false
        /// The lock of the spool; nil if it could not be taken at the start.
        var lock: SpoolLock?
        /// True while the spool has no `.spoolship` yet. Nothing is made there, because the path may be the
        /// mount point of a file system that is not mounted yet.
        var isNew: Bool
    }

    private let spool: String
    /// The loop of the spool's reader, which writes the file.
    private let loop: EventLoop
    private let log: Log
    private let state: Mutex<State>

    /// - Parameters:
    ///   - lock: the lock taken at the start, if it could be taken.
    ///   - isNew: whether the spool has no `.spoolship` yet.
    ///   - loop: the loop of the spool's reader.
    init(
        in spool: String, isCollecting: Bool, lock: SpoolLock? = nil, isNew: Bool = false, on loop: EventLoop,
        log: Log
    ) {
        self.spool = spool
        self.loop = loop
        self.log = log
        state = Mutex(State(isCollecting: isCollecting, lock: lock, isNew: isNew))
    }

    /// Publishes what the queue accepts, if that changes the state.
    func queueAccepts(_ accepting: QueueSnapshot.Accepting) {
        change { $0.accepting = accepting }
    }

    /// Publishes that collection is switched on or off.
    func setCollecting(_ isCollecting: Bool) {
        change { $0.isCollecting = isCollecting }
    }

    /// Changes the state, and has the file written if writers must be informed.
    private func change(_ body: (inout State) -> Void) {
        let hasChanged = state.withLock { state in
            body(&state)
            // Until the queue has said what it accepts, assume that it accepts all.
            let wanted = SpoolState(state.accepting ?? .all, isCollecting: state.isCollecting)
            guard wanted != state.told else { return false }
            state.told = wanted
            return true
        }
        if hasChanged {
            publishSoon()
        }
    }

    /// Has the newest state written, once if several changes come together: while the spool's file system
    /// hangs, they would pile up.
    private func publishSoon() {
        let isFirst = state.withLock { state in
            defer { state.isAwaited = true }
            return !state.isAwaited
        }
        guard isFirst else { return }
        loop.post {
            self.state.withLock { $0.isAwaited = false }
            self.publish()
        }
    }

    /// The spool's file system has answered: its lock is kept, and writers are informed.
    func adopt(_ taken: SpoolClaim.Taken) {
        state.withLock { ($0.lock, $0.isNew) = (taken.lock, taken.isNew) }
        publishSoon()
    }

    /// Checks that `.spoolship` is in its place, and makes it again with its lock if it was removed.
    ///
    /// In a new spool, which may not be mounted, the directory is made only once events were read there, or
    /// if somebody has made it.
    ///
    /// - Returns: the problem, as long as the directory is missing; nil if all is well.
    func checkLock(hasBeenRead: Bool = false) -> String? {
        let (lock, isNew) = state.withLock { ($0.lock, $0.isNew) }
        guard isNew || lock.map({ !$0.isInPlace(in: spool) }) ?? false else { return nil }
        if !isNew || hasBeenRead || FileStatus("\(spool)/.spoolship") != nil {
            loop.post { self.lockAgain() }
        }
        if isNew, hasBeenRead { return nil }
        return
            ".spoolship is missing in it: is its file system mounted? If it is new, `install -d -o spoolship"
            + " \(spool)/.spoolship`; if this does not pass, another agent has it"
    }

    /// Makes `.spoolship` with its lock. If another agent has the lock, the next check tries again.
    private func lockAgain() {
        guard let new = try? SpoolLock.take(spool) else { return }
        state.withLock { ($0.lock, $0.isNew) = (new, false) }
        log.warning(".spoolship was missing in the spool: it is made again", ["directory": spool])
        publish()
    }

    /// Writes the newest state. A failed write is repeated at the next change.
    private func publish() {
        guard let wanted = state.withLock({ $0.isNew ? nil : $0.told }) else { return }
        do throws(SpoolError) {
            try wanted.publish(in: spool)
            state.withLock { $0.hasFailed = false }
        } catch {
            let isFirst = state.withLock { state in
                defer { state.hasFailed = true }
                state.failures += 1
                return !state.hasFailed
            }
            if isFirst {
                log.warning("writers not informed", ["hint": error.message])
            }
        }
    }

    func collect(into exposition: inout Exposition) {
        exposition.set(\.persistenceFailures, ["state_file"], to: state.withLock { $0.failures })
    }
}

extension SpoolState {
    /// What writers need to know of the queue, with a reason for a person.
    init(_ accepting: QueueSnapshot.Accepting, isCollecting: Bool) {
        switch accepting {
        case _ where !isCollecting:
            self.init(.none, reason: "collection is disabled; spoolship enable turns it on")
        case .all: self.init(.all)
        case .critical: self.init(.critical, reason: "the queue is full of critical events")
        case .nothing(.full): self.init(.none, reason: "the queue is full")
        case .nothing(.diskFull): self.init(.none, reason: "the disk of the state directory is full")
        case .nothing(.notWritable): self.init(.none, reason: "the state directory cannot be written")
        case .nothing(.outOfReach):
            self.init(.none, reason: "the queue's database was removed, replaced or closed off")
        case .nothing(.walPinned):
            self.init(.none, reason: "another program keeps the queue's WAL from being written back")
        }
    }
}
