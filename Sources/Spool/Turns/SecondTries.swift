internal import EventLoops
internal import Glibc

/// Why something in the spool waits for a second try. Closed, because each is a metric label.
public enum SpoolObstacle: String, Sendable, CaseIterable {
    /// The process or the machine has no descriptors left.
    case descriptors
    /// The kernel has no memory for it.
    case memory
    /// The agent may not do it.
    case permission
    /// The file system is read-only.
    case readOnly = "read_only"
    /// The file system has no room.
    case noRoom = "no_room"
    /// What is there by one call is not there by another.
    case missing
    /// The disk or the network behind the file system fails.
    case inputOutput = "input_output"
    /// Any other error.
    case other

    init(_ error: SystemError) {
        self =
            switch error.number {
            case EMFILE, ENFILE: .descriptors
            case ENOMEM, ENOBUFS: .memory
            case EACCES, EPERM: .permission
            case EROFS: .readOnly
            case ENOSPC, EDQUOT: .noRoom
            case ENOENT, ENOTDIR, ESTALE: .missing
            case EIO, ENXIO, ENODEV, EREMOTEIO, ETIMEDOUT: .inputOutput
            default: .other
            }
    }

    /// Whether it concerns one file or directory whose owner can fix it, not the agent or its machine.
    public var isOwners: Bool { self == .permission || self == .missing }
}

/// What could not be done because a system call failed, and is done again later: no error but those that mean it is final.
struct SecondTries {
    enum Kind {
        case open, watch, list, look, read, check, sync
        /// All is to be listed: more waits than is remembered.
        case everything

        /// Those that are about what is at their path.
        static let ofPaths: [Kind] = [.open, .watch, .list, .look, .read, .check]
    }

    struct Key: Hashable {
        var path: FileName
        var kind: Kind
    }

    /// How many are remembered; beyond that everything is listed again.
    static let most = 1024
    private static let first = Duration.milliseconds(250)
    /// How long after a failure its next one counts as a first.
    private static let memory = Duration.seconds(7200)

    /// How many are tried before other work gets its turn.
    private static let atATime = 32

    private(set) var waiting: [Key: (task: () -> Void, obstacle: SpoolObstacle, due: BootInstant)] = [:]
    /// When the agenda comes back to them: it has one entry for all, whatever is forgotten and put on the list again.
    private var planned: BootInstant?
    private var failures: [Key: (count: Int, last: BootInstant)] = [:]

    var counts: [SpoolObstacle: Int] {
        waiting.values.reduce(into: [:]) { $0[$1.obstacle, default: 0] += 1 }
    }

    /// Puts one on the list. When the agenda is to come back, if that is earlier than it does.
    mutating func add(
        _ kind: Kind, _ path: FileName, _ obstacle: SpoolObstacle, at now: BootInstant, _ task: @escaping () -> Void
    ) -> BootInstant? {
        let key = Key(path: path, kind: kind)
        guard waiting[key] == nil else { return nil }
        let before = failures[key].map { now - $0.last < SecondTries.memory ? $0.count : 0 } ?? 0
        if failures.count >= 4 * SecondTries.most { failures.removeAll() }
        failures[key] = (before + 1, now)
        // Doubled each time: a shortage goes within seconds; who may read what is changed by people.
        let longest = obstacle == .permission ? Duration.seconds(3600) : .seconds(60)
        let due = now + min(longest, SecondTries.first * (1 << min(before, 14)))
        waiting[key] = (task, obstacle, due)
        guard due < planned ?? .init(nanoseconds: .max) else { return nil }
        planned = due
        return due
    }

    /// Takes some that are due, and says when the agenda is to come back.
    mutating func popDue(_ now: BootInstant) -> (tasks: [() -> Void], next: BootInstant?) {
        // An entry that an earlier one has made superfluous.
        if let planned, planned > now { return ([], nil) }
        let due = waiting.filter { $0.value.due <= now }.prefix(SecondTries.atATime)
        for key in due.map(\.key) { waiting[key] = nil }
        planned = waiting.values.map(\.due).min()
        return (due.map(\.value.task), planned)
    }

    /// What is there was reached, or is gone.
    mutating func forget(_ path: FileName) {
        guard !waiting.isEmpty else { return }
        for kind in Kind.ofPaths {
            let key = Key(path: path, kind: kind)
            if waiting.removeValue(forKey: key) != nil { failures[key] = nil }
        }
    }
}

extension SpoolReader {
    /// A system call has failed: what it was for is tried again, with growing waits. Counted until then.
    func tryAgain(
        _ kind: SecondTries.Kind, _ path: FileName, _ error: SystemError, _ task: @escaping () -> Void
    ) {
        let obstacle = SpoolObstacle(error)
        let isFull = trouble.secondTries.waiting.count >= SecondTries.most
        if case .descriptors = obstacle { shedDescriptors() }
        let due =
            isFull
            ? trouble.secondTries.add(.everything, FileName(""), obstacle, at: now, rescanAll)
            : trouble.secondTries.add(kind, path, obstacle, at: now, task)
        if let due { schedule(at: due) { self.tryNow() } }
        wake()
    }

    /// The same for a name that could not be looked at; for a whole directory if it is empty.
    func tryAgain(at name: FileName, in directory: SpoolDirectory, _ error: SystemError) {
        if name.bytes.isEmpty {
            tryAgain(.list, directory.path, error) { self.rescan(directory) }
        } else {
            tryAgain(.look, directory.path(of: name), error) { self.look(at: name, in: directory) }
        }
    }

    func tryNow() {
        let (tasks, next) = trouble.secondTries.popDue(now)
        if let next { schedule(at: next) { self.tryNow() } }
        for task in tasks { task() }
        wake()
    }

    func look(at name: FileName, in directory: SpoolDirectory, isComplete: Bool = false) {
        guard !directory.isGone else { return }
        if case .drop = kind(of: name, in: directory) {
            offer(directory, name, isComplete: isComplete)
        } else {
            notice(directory, name)
        }
    }

    private func rescanAll() { for directory in tree.directories.values { rescan(directory) } }

    private func rescan(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        scan(directory)
        for file in directory.files.values {
            if file.hasUnread { makeReady(file) } else { considerLater(file) }
        }
    }

    /// What is at a path was reached, or is gone: nothing about it waits any more.
    func reached(_ path: @autoclosure () -> FileName) {
        guard !trouble.complaints.isEmpty || !trouble.refusals.isEmpty || !trouble.secondTries.waiting.isEmpty
        else { return }
        let path = path()
        trouble.complaints.remove(path)
        trouble.refusals.remove(path)
        trouble.secondTries.forget(path)
    }

    /// Whether a name is there although a call has said that it is not.
    func isThere(_ name: FileName, in directory: SpoolDirectory) -> Bool {
        guard !directory.isGone, let raw = directory.descriptor?.raw else { return false }
        return (try? FileSystem.status(raw, name)) != nil
    }
}
