internal import EventLoops
internal import Glibc

/// Why a system call on a file of the spool failed and is retried. The set is closed, because each case is a
/// metric label.
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
    /// A user has used up what the file system grants.
    case quota
    /// Two calls disagree about a name: one finds it, the other does not, or finds something else, such as a
    /// directory or a link.
    case missing
    /// All names that were drawn at random for a claim are in use.
    case nameTaken = "name_taken"
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
            case ENOSPC: .noRoom
            case EDQUOT: .quota
            case ENOENT, ENOTDIR, EISDIR, ELOOP, ESTALE: .missing
            case EEXIST: .nameTaken
            case EIO, ENXIO, ENODEV, EREMOTEIO, ETIMEDOUT: .inputOutput
            default: .other
            }
    }

    /// Whether the obstacle concerns one file or directory and its owner can fix it, in contrast to a
    /// shortage of the agent or the machine.
    public var isOwners: Bool { [.permission, .missing, .nameTaken, .quota].contains(self) }
}

/// Tasks to retry after a failed system call, with growing waits. No failure is final unless its error says
/// so; otherwise a shortage of a second could cost a file.
struct SecondTries {
    /// Kinds of failed tasks; a path may have one task of each kind.
    enum Kind {
        case open, watch, list, look, read, check, sync
        /// List everything, because more tasks failed than are remembered.
        case everything

        /// The kinds that end when their path was reached.
        static let ofPaths: [Kind] = [.open, .watch, .list, .look, .read, .check]
    }

    /// Identity of a task: a path has at most one of each kind.
    struct Key: Hashable {
        var path: FileName
        var kind: Kind
    }

    /// Most tasks that are remembered; beyond them everything is listed again.
    static let most = 1024
    /// Wait after the first failure; doubled with each further one.
    private static let first = Duration.milliseconds(250)
    /// Time after a failure until the next failure of the same task counts as a first one again.
    private static let memory = Duration.seconds(7200)

    /// Most paths that are named to people.
    static let mostNamed = 8

    /// Most tasks that are retried before other work gets its turn.
    private static let atATime = 32

    private var waiting: [Key: (task: Errand, obstacle: SpoolObstacle, due: BootInstant)] = [:]
    /// Time at which the agenda calls `popDue` next. The agenda has one errand for all tasks, which stays
    /// planned if tasks are forgotten.
    private var planned: BootInstant?
    /// Number and time of a task's failures, also while it does not wait; determines its next wait.
    private var failures: [Key: (count: Int, last: BootInstant)] = [:]

    var counts: [SpoolObstacle: Int] {
        waiting.values.reduce(into: [:]) { $0[$1.obstacle, default: 0] += 1 }
    }

    var isEmpty: Bool { waiting.isEmpty }

    /// Some of the paths of tasks that wait, each once.
    var paths: [FileName] {
        Array(Set(waiting.keys.map(\.path)).sorted().prefix(SecondTries.mostNamed))
    }

    /// Adds a task. If the list is full, one task that lists everything is added instead.
    ///
    /// - Returns: the time at which the agenda must call `popDue`, if that is earlier than planned; else
    ///   nil.
    mutating func add(
        _ kind: Kind, _ path: FileName, _ obstacle: SpoolObstacle, at now: BootInstant, _ task: Errand
    ) -> BootInstant? {
        let isFull = waiting.count >= SecondTries.most
        let key = isFull ? Key(path: FileName(""), kind: .everything) : Key(path: path, kind: kind)
        guard waiting[key] == nil else { return nil }
        let before = failures[key].map { now - $0.last < SecondTries.memory ? $0.count : 0 } ?? 0
        if failures.count >= 4 * SecondTries.most {
            failures.removeAll()
        }
        failures[key] = (before + 1, now)
        // The wait doubles each time, up to a minute: a shortage passes within seconds. Permissions are
        // changed by people, so their wait grows up to an hour.
        let longest = obstacle == .permission ? Duration.seconds(3600) : .seconds(60)
        let due = now + min(longest, SecondTries.first * (1 << min(before, 14)))
        waiting[key] = (isFull ? .listEverything : task, obstacle, due)
        guard due < planned ?? .init(nanoseconds: .max) else { return nil }
        planned = due
        return due
    }

    /// Takes out some due tasks; `next` is the time of the next call, nil if no task is left.
    mutating func popDue(_ now: BootInstant) -> (tasks: [Errand], next: BootInstant?) {
        // An earlier call has already done the work of this one.
        if let planned, planned > now { return ([], nil) }
        let due = waiting.filter { $0.value.due <= now }.prefix(SecondTries.atATime)
        for key in due.map(\.key) { waiting[key] = nil }
        planned = waiting.values.map(\.due).min()
        return (due.map(\.value.task), planned)
    }

    /// Forgets the tasks of a path that was reached or is gone, and that they failed.
    mutating func forget(_ path: FileName) {
        guard !waiting.isEmpty else { return }
        for kind in Kind.ofPaths {
            let key = Key(path: path, kind: kind)
            if waiting.removeValue(forKey: key) != nil {
                failures[key] = nil
            }
        }
    }
}
