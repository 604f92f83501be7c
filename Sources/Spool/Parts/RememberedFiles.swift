internal import EventLoops
internal import Model

/// What the queue keeps of files that are not read now: those of the last stop that were not found yet, drop files that
/// stay, and files that are gone, of which a copy or an archive may turn up.
struct RememberedFiles {
    /// How long a file that is gone is remembered. Rotation compresses it within minutes; the agent may be off longer.
    ///
    /// By both clocks: one that is set ahead makes no file old, and one that was wrong keeps none for ever.
    private static let memory = Duration.seconds(86_400)
    /// For how long at least after a start that finds a file gone: a clock that is only set then would have it forgotten.
    private static let memoryAfterStart = Duration.seconds(3600)
    static let mostMissing = 2048
    /// How many while files wait to be compared with them: kills and quick rotations make copies faster than they can be looked
    /// at, and the oldest of them are looked at last.
    static let mostWhileWaiting = 8 * mostMissing
    private static let marksOfMissing = 8

    private(set) var kept: [FileID: Checkpoint]
    /// Those whose contents copies and archives may be known by.
    private(set) var contents = ContentIndex<FileID>()
    /// Their inode numbers, to find files under names that say nothing; only during the first listing.
    var inodes: Set<UInt64> = []
    /// Drop files that stay and are there; nil once the first listing has ended.
    private var present: Set<FileID>? = []
    /// Files that are gone, by their holders, in the order in which they were missed; for no holder those that were missed together with
    /// their directories: when these come back, so do they.
    private var missing: [Holder?: FIFO<Missed>] = [:]
    /// How many there are of holders.
    private var missingCount = 0
    /// The latest time at which one was missed, or after it: their order must outlive a clock that is set back.
    private var latest: Int64 = 0

    private struct Missed {
        var id: FileID
        /// As its checkpoint has it. If that has another time by now, it came back and was missed again since.
        var since: Int64?
        var noted: BootInstant
        /// Whether an earlier process missed it first.
        var isOlder: Bool
    }

    private let joinedTops: Set<[UInt8]>

    /// - Parameter joinedTops: as `Holder` takes them.
    init(_ checkpoints: [Checkpoint], joinedTops: Set<[UInt8]> = []) {
        self.joinedTops = joinedTops
        kept = Dictionary(checkpoints.map { (FileID(bytes: $0.key), $0) }) { _, last in last }
        for (id, checkpoint) in kept {
            guard let trace = FileTrace(checkpoint.state) else { continue }
            inodes.insert(trace.inode)
            latest = max(latest, trace.missingSince ?? 0)
            enter(id, checkpoint, trace)
        }
    }

    private mutating func enter(_ id: FileID, _ checkpoint: Checkpoint, _ trace: FileTrace) {
        guard trace.hasContent else { return }
        contents.add(id, trace.fingerprint, to: Stream.of(checkpoint, trace, joinedTops: joinedTops))
    }

    mutating func keep(_ checkpoint: Checkpoint) {
        let id = FileID(bytes: checkpoint.key)
        remove(id)
        kept[id] = checkpoint
        if let trace = FileTrace(checkpoint.state) { enter(id, checkpoint, trace) }
    }

    /// Keeps what was read of a drop file that is still there.
    mutating func keepPresent(_ checkpoint: Checkpoint) {
        keep(checkpoint)
        see(FileID(bytes: checkpoint.key))
    }

    /// A drop file is there: if it is known, it is not missing at the end of the first listing.
    mutating func see(_ id: FileID) {
        if kept[id] != nil { present?.insert(id) }
    }

    @discardableResult
    mutating func remove(_ id: FileID) -> Checkpoint? {
        guard let checkpoint = kept.removeValue(forKey: id) else { return nil }
        if let trace = FileTrace(checkpoint.state), trace.hasContent {
            contents.remove(id, trace.fingerprint, from: Stream.of(checkpoint, trace, joinedTops: joinedTops))
        }
        return checkpoint
    }

    /// The contents of some streams that a file begins with.
    func contents(of streams: [Stream], _ head: Head) -> [(streams: [Stream], trace: FileTrace)] {
        var ids: Set<FileID> = []
        for stream in streams { contents.beginning(head, of: stream) { ids.insert($0) } }
        return ids.compactMap { id in
            guard let checkpoint = kept[id], let trace = FileTrace(checkpoint.state) else { return nil }
            let own = Stream.of(checkpoint, trace, joinedTops: joinedTops)
            return own.contains(where: streams.contains) ? (own, trace) : nil
        }
    }

    /// Since when a file is gone; nil if it is not, as far as is known.
    private static func missingSince(_ checkpoint: Checkpoint, _ trace: FileTrace?) -> Int64? {
        trace.map { $0.missingSince } ?? ObjectSplitter.Place.missingSince(checkpoint)
    }

    /// Remembers a file that is gone.
    ///
    /// - Parameters:
    ///   - trace: what it is known by; nil: a drop file that was read in part.
    ///   - isAway: whether its directory is not there, or cannot be read: it may come back with all of its files, however
    ///     many they are.
    ///   - hasWaiting: whether there are files that may be copies, and were not compared yet.
    ///   - pass: says it with the next commit.
    mutating func miss(
        _ checkpoint: Checkpoint, _ trace: FileTrace?, isAway: Bool, at time: any TimeSource, hasWaiting: Bool = false,
        in pass: inout Pass
    ) {
        var checkpoint = checkpoint
        let before = RememberedFiles.missingSince(checkpoint, trace)
        let isOlder = before != nil
        let since = before ?? max(time.wallTime.milliseconds, latest.addingSaturating(1))
        latest = max(latest, since)
        if var trace {
            trace.missingSince = since
            trace.marks = Array(trace.marks.suffix(RememberedFiles.marksOfMissing))
            checkpoint.state = trace.encoded
        } else if let place = ObjectSplitter.Place(checkpoint) {
            checkpoint.state = place.encoded(missingSince: since)
        }
        let id = FileID(bytes: checkpoint.key)
        // At a start most are kept as they are already.
        if kept[id] != checkpoint {
            keep(checkpoint)
            pass.keep(checkpoint, of: id)
        }
        let missed = Missed(id: id, since: since, noted: time.bootTime, isOlder: isOlder)
        let holder = isAway ? nil : Holder(of: checkpoint.path.utf8, owner: trace?.owner, joinedTops: joinedTops).pooled
        missing[holder, default: FIFO()].append(missed)
        if !isAway { missingCount += 1 }
        forget(of: holder, at: time, in: &pass)
        let most = hasWaiting ? RememberedFiles.mostWhileWaiting : RememberedFiles.mostMissing
        // Whoever has the most gives up the oldest, so that nobody makes another's copies unknown.
        while missingCount > most,
            let largest = missing.max(by: { $0.key == nil || $0.value.count < $1.value.count && $1.key != nil })?.key
        {
            forget(of: largest, at: time, atLeast: 1, in: &pass)
        }
    }

    /// Takes out files that have been gone for long, and the oldest beyond those; what was found again is only taken out.
    private mutating func forget(
        of holder: Holder?, at time: any TimeSource, atLeast least: Int = 0, in pass: inout Pass
    ) {
        let (wall, boot) = (time.wallTime, time.bootTime)
        var count = 0
        while let first = missing[holder]?.first {
            let since = kept[first.id].flatMap { RememberedFiles.missingSince($0, FileTrace($0.state)) }
            let isMissing = since != nil && since == first.since
            guard !isMissing || count < least || RememberedFiles.isOld(first, at: wall, boot) else { break }
            _ = missing[holder]?.popFirst()
            count += 1
            guard isMissing else { continue }
            remove(first.id)
            pass.forget(first.id)
        }
        if holder != nil { missingCount -= count }
        if missing[holder]?.isEmpty == true { missing[holder] = nil }
    }

    /// Whether a file has been gone for so long that nobody will ask for it.
    private static func isOld(_ missed: Missed, at wall: Timestamp, _ boot: BootInstant) -> Bool {
        let age = wall - Timestamp(milliseconds: missed.since ?? 0)
        // Missed in the future: the clock was wrong then, or is now, and only what this process saw counts.
        let isPlausible = age >= .zero
        guard age > memory || !isPlausible else { return false }
        return boot - missed.noted > (missed.isOlder && isPlausible ? memoryAfterStart : memory)
    }

    /// A file that stays is there after all: it was renamed while its directory was listed, or came back with it. From now on it
    /// does not count as gone, or it would be forgotten a day later, and read again.
    mutating func found(_ id: FileID, in pass: inout Pass) {
        guard var checkpoint = kept[id], var trace = FileTrace(checkpoint.state), trace.missingSince != nil else {
            return
        }
        trace.missingSince = nil
        checkpoint.state = trace.encoded
        keep(checkpoint)
        pass.keep(checkpoint, of: id)
    }

    /// Every directory was listed once: what was not found is missing. Gives those, the first that went first.
    mutating func endFirstListing() -> [(id: FileID, checkpoint: Checkpoint, trace: FileTrace?)] {
        inodes = []
        // All that is missing is missed once more in order, what was missed before this among it.
        missing = [:]
        missingCount = 0
        let unseen = kept.filter { present?.contains($0.key) != true }.map { ($0, $1, FileTrace($1.state)) }
        present = nil
        func since(_ file: (FileID, Checkpoint, FileTrace?)) -> Int64 {
            RememberedFiles.missingSince(file.1, file.2) ?? .max
        }
        return unseen.sorted { since($0) < since($1) }
    }

    /// Whether much of the memory is that of files that are known now; gives it back then. Of a million files it is half of all.
    mutating func release() -> Bool {
        guard kept.capacity > 4 * kept.count + 4096 else { return false }
        kept = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
        return true
    }
}
