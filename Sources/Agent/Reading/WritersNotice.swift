internal import EventLoops
internal import Logs
internal import Metrics
internal import Model
internal import Queue
internal import Spool
internal import Synchronization

/// Tells writers what the agent accepts now (ac08), whenever that changes, and keeps the lock that is beside it.
///
/// Asked from any thread; it writes on the reader's loop, because a slow disk of the spool must not delay a commit.
final class WritersNotice: MetricCollector, Sendable {
    private struct State {
        var accepting: QueueSnapshot.Accepting?
        var isCollecting: Bool
        var told: SpoolState?
        var failures = 0
        var hasFailed = false
        var lock: SpoolLock?
        var isNew: Bool
    }

    private let spool: String
    private let loop: EventLoop
    private let log: Log
    private let state: Mutex<State>

    /// Has told nothing yet. `lock` is the one taken at the start, where it could be; `loop` is the reader's.
    init(
        in spool: String, isCollecting: Bool, lock: SpoolLock? = nil, isNew: Bool = false, on loop: EventLoop, log: Log
    ) {
        self.spool = spool
        self.loop = loop
        self.log = log
        state = Mutex(State(isCollecting: isCollecting, lock: lock, isNew: isNew))
    }

    func queueAccepts(_ accepting: QueueSnapshot.Accepting) {
        change { $0.accepting = accepting }
    }

    func setCollecting(_ isCollecting: Bool) {
        change { $0.isCollecting = isCollecting }
    }

    private func change(_ body: (inout State) -> Void) {
        let hasChanged = state.withLock { state in
            body(&state)
            let wanted = SpoolState(state.accepting ?? .all, isCollecting: state.isCollecting)
            guard wanted != state.told else { return false }
            state.told = wanted
            return true
        }
        if hasChanged { loop.post { self.publish() } }
    }

    /// Asked how the spool is, makes a removed `.spoolship` again, with its lock; gives what is wrong until it is made. In a
    /// spool that is new, which may not be mounted, it is made once something `hasBeenRead` there, or somebody has made it.
    func checkLock(hasBeenRead: Bool = false) -> String? {
        let (lock, isNew) = state.withLock { ($0.lock, $0.isNew) }
        guard isNew || lock.map({ !$0.isInPlace(in: spool) }) ?? false else { return nil }
        if !isNew || hasBeenRead || FileStatus("\(spool)/.spoolship") != nil { loop.post { self.lockAgain() } }
        if isNew, hasBeenRead { return nil }
        return ".spoolship is missing in it: is its file system mounted? If it is new, `install -d -o spoolship"
            + " \(spool)/.spoolship`; if this does not pass, another agent has it"
    }

    private func lockAgain() {
        guard let new = try? SpoolLock.take(spool) else { return }
        state.withLock { ($0.lock, $0.isNew) = (new, false) }
        log.warning(".spoolship was missing in the spool: it is made again", ["directory": spool])
        publish()
    }

    /// Writes the newest state; what failed is tried again at the next change.
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
            if isFirst { log.warning("writers not informed", ["hint": error.message]) }
        }
    }

    func collect(into exposition: inout Exposition) {
        exposition.set(\.persistenceFailures, ["state_file"], to: state.withLock { $0.failures })
    }
}

extension SpoolState {
    /// What writers are to know of the queue, in words for a person.
    init(_ accepting: QueueSnapshot.Accepting, isCollecting: Bool) {
        switch accepting {
        case _ where !isCollecting:
            self.init(.none, reason: "collection is disabled; spoolship enable turns it on")
        case .all: self.init(.all)
        case .critical: self.init(.critical, reason: "the queue is full of critical events")
        case .nothing(.full): self.init(.none, reason: "the queue is full")
        case .nothing(.diskFull): self.init(.none, reason: "the disk of the state directory is full")
        case .nothing(.notWritable): self.init(.none, reason: "the state directory cannot be written")
        case .nothing(.outOfReach): self.init(.none, reason: "the queue's database was removed, replaced or closed off")
        case .nothing(.walPinned):
            self.init(.none, reason: "a reader outside keeps the queue's WAL from being written back")
        }
    }
}
