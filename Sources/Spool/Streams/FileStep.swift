/// The facts from which the next step of an append file is decided. Deciding needs no disk and no clock, so
/// all combinations can be tested.
struct FileFacts: Equatable, Sendable {
    /// Whether processes have the file open for writing.
    enum Writers: Equatable, Sendable, CaseIterable {
        case notAsked
        /// The agent holds a file lease: no process has the file open.
        case absent
        case present
        /// The kernel cannot be asked: the file is read in place, the agent lacks CAP_LEASE, or the file
        /// system has no leases.
        case unknown
        /// The system call failed for want of memory or descriptors.
        case unanswered
    }

    var naming: AppendFile.Naming
    var end: AppendFile.End
    /// Whether the file ends with an incomplete line, or with zeros that may still be filled, and the end is
    /// not sealed.
    var isUnsealed: Bool
    /// Whether complete lines at the end wait for more lines that may belong to their record.
    var holdsText: Bool
    var isEmpty: Bool
    /// Whether all of the file is in the queue.
    var isCommitted: Bool
    /// Whether the agent removes the file once it is queued.
    var mayGo: Bool
    var writers = Writers.notAsked
    /// Whether the file has changed since it was read.
    var hasChanged = false
    /// Whether the kernel reports changes of the file and closes by writers (inotify).
    var isReported: Bool
    /// Time since the last change that was seen.
    var silence: Duration
}

/// How long a file must be unchanged before each step (described in `SpoolOptions`).
struct FileWaits: Equatable, Sendable {
    var text: Duration
    var settle: Duration
    var seal: Duration
    var giveUp: Duration
    var unclosed: Duration

    init(_ options: SpoolOptions) {
        text = options.textTime
        settle = options.settleTime
        seal = options.sealTime
        giveUp = options.giveUpTime
        unclosed = options.unclosedTime
    }
}

/// The next step of an append file that was read as far as possible and is not about to be removed.
///
/// Six rules hold for all facts; a test tries every combination:
/// 1. A file that is not in the queue is neither removed nor forgotten.
/// 2. No end is sealed while a writer has the file open. If the kernel cannot be asked, a rename or deletion
/// says nothing about the writer: only a close that was seen does, or a long silence after the rotation.
/// 3. If the kernel cannot be asked, a file that has a name is not removed.
/// 4. A file without a name is forgotten once it is read.
/// 5. Complete lines whose record may continue wait for silence only.
/// 6. A shortage of memory or descriptors only postpones a step.
enum FileStep: Equatable, Sendable {
    /// Do nothing: the file needs nothing, or the kernel will report the change that the file waits for.
    case nothing
    case lookAgain(after: Duration)
    /// Ask the kernel for writers; then the step is decided again.
    case askForWriters
    case readChanges
    /// The lines at the end count as a complete record.
    case readText
    /// The last line counts as complete although it has no LF.
    case seal
    /// As `seal`, although no writer was seen to close the file.
    case sealUnclosed
    case claimAndRemove
    case forget

    /// Decides the next step of a file.
    static func next(_ facts: FileFacts, _ waits: FileWaits) -> FileStep {
        guard let quiet = quietTime(facts, waits) else { return .nothing }
        guard facts.silence >= quiet else { return .lookAgain(after: quiet - facts.silence) }
        if facts.isUnsealed, facts.holdsText { return .readText }
        switch facts.writers {
        case .notAsked: return .askForWriters
        case .unanswered: return .lookAgain(after: pause(facts, waits))
        case .present:
            // The kernel reports a close before it counts the writer as gone (fsnotify_close in __fput), and
            // there is no second report. So after a close the kernel is asked for writers again, at growing
            // intervals, since the writer that remains may also be another one.
            guard facts.isReported else { return .lookAgain(after: pause(facts, waits)) }
            guard facts.end == .closed else { return .nothing }
            return .lookAgain(after: max(pause(facts, waits), min(facts.silence, waits.unclosed)))
        case .absent, .unknown: break
        }
        if facts.hasChanged { return .readChanges }
        if facts.isUnsealed { return sealing(facts, waits) }
        // The commit that is under way causes another check when it ends.
        guard facts.isCommitted else { return .nothing }
        switch (facts.naming, facts.writers) {
        case (.none, .absent): return .forget
        // A writer may have the file open and add lines, so it is kept for a while.
        case (.none, _):
            return facts.silence >= waits.giveUp ? .forget : .lookAgain(after: pause(facts, waits))
        case (_, .absent): return .claimAndRemove
        case (_, _): return .nothing
        }
    }

    /// How long the file must be unchanged before a step; nil if no step will follow.
    private static func quietTime(_ facts: FileFacts, _ waits: FileWaits) -> Duration? {
        if facts.isUnsealed {
            if facts.holdsText { return waits.text }
            return facts.naming == .written ? waits.seal : waits.settle
        }
        switch facts.naming {
        case .none: return waits.settle
        case .rotated: return facts.mayGo ? waits.settle : nil
        case .written: return facts.mayGo && !facts.isEmpty ? waits.giveUp : nil
        }
    }

    /// Whether the end is sealed, if no process has the file open or the kernel cannot be asked.
    private static func sealing(_ facts: FileFacts, _ waits: FileWaits) -> FileStep {
        if facts.writers == .absent || facts.end == .closed { return .seal }
        guard facts.naming != .written else { return .nothing }
        guard facts.silence < waits.unclosed else { return .sealUnclosed }
        // If the kernel reports no changes of the file, its size is polled meanwhile.
        let rest = waits.unclosed - facts.silence
        return .lookAgain(after: facts.isReported ? rest : min(rest, pause(facts, waits)))
    }

    /// The wait until the same question is asked again.
    private static func pause(_ facts: FileFacts, _ waits: FileWaits) -> Duration {
        max(facts.naming == .written ? min(waits.giveUp, waits.seal) : waits.settle, .milliseconds(100))
    }
}
