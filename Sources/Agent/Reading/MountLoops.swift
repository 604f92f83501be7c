internal import EventLoops
internal import Spool
internal import Synchronization

/// Loops for file systems that may never answer (NFS, SMB, FUSE): one for each such mount that is read, made
/// when it is first seen. What hangs there delays nothing else. From any thread.
final class MountLoops: Sendable {
    /// The loop of a mount, with what its readers share.
    struct Home: Sendable {
        let loop: EventLoop
        let mount: DistantMount
        let shared: LoopBound<SharedReading>
    }

    private struct State {
        var homes: [DistantMount: Home] = [:]
        /// How many readers each loop has; it ends with the last one.
        var readerCounts: [DistantMount: Int] = [:]
        /// How many loops there have been for each mount point, for their names.
        var loopsMade: [String: Int] = [:]
        /// Names of the loops that did not answer when they were asked last.
        var silent: Set<String> = []
        /// The reader of each place. It is notified if its path leads to another mount.
        var readers: [ReadPlace: MovableReader] = [:]
        /// Called with the first loop.
        var firstMade: (@Sendable () -> Void)?

        /// The known loop of a mount, which has one more reader then.
        mutating func join(_ mount: DistantMount) -> Home? {
            guard let known = homes[mount] else { return nil }
            readerCounts[mount, default: 0] += 1
            return known
        }
    }

    private let state = Mutex(State())

    /// The loop of a mount, for one more reader. It is made for the first one, with a thread of its own, and
    /// ends when the last one leaves.
    func join(_ mount: DistantMount) throws(SystemError) -> Home {
        if let known = state.withLock({ $0.join(mount) }) { return known }
        // A mount that was unmounted and mounted again gets another loop: the old one may hang for ever.
        let number = state.withLock { state in
            state.loopsMade[mount.path, default: 0] += 1
            return state.loopsMade[mount.path] ?? 1
        }
        let loop = try EventLoop(name: "files of \(mount.path)" + (number == 1 ? "" : " (\(number))"))
        try loop.start()
        let shared = LoopBound(sharedReading(on: loop, of: mount), to: loop)
        let home = Home(loop: loop, mount: mount, shared: shared)
        let made = state.withLock { state in
            // Two that ask at once get the same loop.
            if let known = state.join(mount) {
                loop.stop()
                return (home: known, firstMade: nil as (@Sendable () -> Void)?)
            }
            state.homes[mount] = home
            state.readerCounts[mount] = 1
            return (home: home, firstMade: state.firstMade.take())
        }
        made.firstMade?()
        return made.home
    }

    /// A reader has stopped, or was not made.
    func leave(_ home: Home) {
        let isLast = state.withLock { state in
            let left = (state.readerCounts[home.mount] ?? 1) - 1
            state.readerCounts[home.mount] = left
            guard left == 0 else { return false }
            state.homes[home.mount] = nil
            state.readerCounts[home.mount] = nil
            return true
        }
        if isLast {
            home.loop.stop()
        }
    }

    /// What the readers of a loop share.
    ///
    /// - Parameter mount: nil for the loop *reader*.
    func sharedReading(on loop: EventLoop, of mount: DistantMount? = nil) -> SharedReading {
        SharedReading(on: loop, of: mount) { [weak self] place, mount, wasRead in
            guard let reader = self?.state.withLock({ $0.readers[place] }) else { return }
            reader.loop.post { reader.assumeIsolated { $0.move(to: mount, wasRead: wasRead) } }
        }
    }

    /// Registers the reader of a place, which is notified if its path leads to another mount.
    func add(_ reader: MovableReader) {
        guard let place = reader.place else { return }
        state.withLock { $0.readers[place] = reader }
    }

    /// Calls `body` once there is a loop.
    func whenUsed(_ body: @escaping @Sendable () -> Void) {
        let isUsed = state.withLock { state in
            if state.homes.isEmpty {
                state.firstMade = body
            }
            return !state.homes.isEmpty
        }
        if isUsed {
            body()
        }
    }

    /// All loops, for the check whether they answer.
    var watched: [WatchedLoop] {
        state.withLock(\.homes).values.sorted { $0.mount.path < $1.mount.path }.map {
            WatchedLoop($0.loop, hint: "", mount: $0.mount.path)
        }
    }

    /// Each mount point, with whether all file systems that are or were there and are read answered when they
    /// were asked last.
    var answers: [String: Bool] {
        state.withLock { state in
            state.homes.values.reduce(into: [:]) { answers, home in
                let isAnswering = !state.silent.contains(home.loop.name)
                answers[home.mount.path] = isAnswering && answers[home.mount.path] ?? true
            }
        }
    }

    func isSilent(_ home: Home?) -> Bool {
        guard let home else { return false }
        return state.withLock { $0.silent.contains(home.loop.name) }
    }

    /// Notes which loops did not answer.
    func note(silent: Set<String>) { state.withLock { $0.silent = silent } }

    /// Ends the loops. One whose file system hangs ends when that answers, or with the process.
    func stop() {
        for home in state.withLock(\.homes).values { home.loop.stop() }
    }
}
