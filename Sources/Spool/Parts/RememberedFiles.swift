internal import EventLoops
internal import Model

/// What the queue keeps of files that are not read now: those of the last stop that were not found yet, drop files that
/// stay, and files that are gone, of which a copy or an archive may turn up.
struct RememberedFiles {
    /// How long a file that is gone is remembered. Rotation compresses it within minutes; the agent may be off longer.
    private static let memory = Duration.seconds(86_400)
    /// How many files that are gone are remembered.
    private static let mostMissing = 2048
    /// How many marks are kept of a file that is gone.
    private static let marksOfMissing = 8

    /// The checkpoints.
    var kept: [FileID: Checkpoint]
    /// Their inode numbers, to find files under names that say nothing; only during the first listing.
    var inodes: Set<UInt64>
    /// Drop files that stay and were found; only during the first listing.
    var seen: Set<FileID> = []
    /// Files that are gone, in the order in which they were missed.
    private var missing = Queue<Missed>()
    /// Files that were missed together with their directories: when those come back, so do they.
    private var away = Queue<Missed>()

    private struct Missed {
        var id: FileID
        /// As its checkpoint has it. If that has another time by now, it came back and was missed again since.
        var since: Int64?
    }

    init(_ checkpoints: [Checkpoint]) {
        kept = Dictionary(checkpoints.map { (FileID(bytes: $0.key), $0) }) { _, last in last }
        inodes = Set(kept.values.compactMap { FileTrace($0.state)?.inode })
    }

    /// Remembers a file that is gone.
    ///
    /// - Parameters:
    ///   - isAway: whether its directory is not there, or cannot be read: it may come back with all of its files, however
    ///     many they are.
    ///   - pass: says it with the next commit.
    mutating func miss(
        _ checkpoint: Checkpoint, _ trace: FileTrace, isAway: Bool, at time: Timestamp, in pass: inout Pass
    ) {
        var (checkpoint, trace) = (checkpoint, trace)
        trace.missingSince = trace.missingSince ?? time.milliseconds
        trace.marks = Array(trace.marks.suffix(RememberedFiles.marksOfMissing))
        checkpoint.state = trace.encoded
        let id = FileID(bytes: checkpoint.key)
        // At a start most are kept as they are already.
        if kept[id] != checkpoint {
            kept[id] = checkpoint
            pass.keep(checkpoint, of: id)
        }
        let missed = Missed(id: id, since: trace.missingSince)
        if isAway { away.append(missed) } else { missing.append(missed) }
        let oldest = time.milliseconds - RememberedFiles.memory.nanosecondsClamped / 1_000_000
        for id in RememberedFiles.forgotten(&missing, kept, atMost: RememberedFiles.mostMissing, oldest: oldest)
            + RememberedFiles.forgotten(&away, kept, atMost: .max, oldest: oldest)
        {
            kept[id] = nil
            pass.forget(id)
        }
    }

    /// Takes out files that have been gone for long, or are too many; those that were found again are only taken out.
    private static func forgotten(
        _ gone: inout Queue<Missed>, _ kept: [FileID: Checkpoint], atMost limit: Int, oldest: Int64
    ) -> [FileID] {
        var forgotten: [FileID] = []
        while let first = gone.first {
            let since = kept[first.id].flatMap { FileTrace($0.state)?.missingSince }
            let isMissing = since != nil && since == first.since
            guard !isMissing || gone.count > limit || since ?? 0 < oldest else { break }
            _ = gone.popFirst()
            if isMissing { forgotten.append(first.id) }
        }
        return forgotten
    }

    /// Every directory was listed once: what was not found is missing. Gives those, the first that went first.
    mutating func endFirstListing(at time: Timestamp) -> [(id: FileID, checkpoint: Checkpoint, trace: FileTrace?)] {
        inodes = []
        // All that is missing is missed once more in order, what was missed before this among it.
        missing = Queue()
        away = Queue()
        let unseen = kept.filter { !seen.contains($0.key) }.map { ($0, $1, FileTrace($1.state)) }
        seen = []
        let now = time.milliseconds
        return unseen.sorted { $0.2?.missingSince ?? now < $1.2?.missingSince ?? now }
    }

    /// Whether much of the memory is that of files that are known now; gives it back then. Of a million files it is half of all.
    mutating func release() -> Bool {
        guard kept.capacity > 4 * kept.count + 4096 else { return false }
        kept = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
        return true
    }
}
