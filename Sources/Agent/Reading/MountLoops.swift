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
        /// Names of the loops that did not answer when they were asked last.
        var silent: Set<String> = []
        /// The reader of each place, which is told when its path leads to another mount.
        var readers: [ReadPlace: MovableReader] = [:]
        /// Called with the first loop.
        var firstMade: (@Sendable () -> Void)?
    }

    private let state = Mutex(State())

    /// The loop of a mount, made when it is first asked for, with a thread of its own.
    func home(of mount: DistantMount) throws(SystemError) -> Home {
        if let known = state.withLock({ $0.homes[mount] }) { return known }
        // A mount that was unmounted and mounted again gets a loop of its own: the old one may hang for ever.
        let again = state.withLock { $0.homes.keys.count { $0.path == mount.path } }
        let loop = try EventLoop(name: "files of \(mount.path)" + (again == 0 ? "" : " (\(again + 1))"))
        try loop.start()
        let shared = LoopBound(sharedReading(on: loop, of: mount), to: loop)
        let home = Home(loop: loop, mount: mount, shared: shared)
        let made = state.withLock { state in
            // Two that ask at once get the same loop.
            if let known = state.homes[mount] {
                loop.stop()
                return (home: known, firstMade: nil as (@Sendable () -> Void)?)
            }
            state.homes[mount] = home
            return (home: home, firstMade: state.firstMade.take())
        }
        made.firstMade?()
        return made.home
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

    /// Has the reader of a place told when its path leads to another mount.
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

    /// Each mount, with whether its file system answered when it was asked last.
    var answers: [(mount: String, isAnswering: Bool)] {
        let state = state.withLock(\.self)
        return state.homes.values.sorted { $0.mount.path < $1.mount.path }.map {
            ($0.mount.path, !state.silent.contains($0.loop.name))
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
