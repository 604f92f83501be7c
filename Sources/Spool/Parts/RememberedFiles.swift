internal import EventLoops
internal import Model

/// The checkpoints of files that are not read now: files that were known at the last stop and were not found
/// yet, drop files that stay, and files that are gone. Copies and archives of the last kind may turn up, and
/// would be read again if their content were not recognised.
///
/// A file is either known (`Streams.files`) or remembered, never both.
struct RememberedFiles {
    /// How long a file that is gone is remembered. Rotation compresses a file within minutes, but the agent
    /// may be off for longer.
    ///
    /// Both clocks must agree: a wall clock that is set ahead must not make files old at once, and a wall
    /// clock that was wrong must not keep them for ever.
    private static let memory = Duration.seconds(86_400)
    /// Shortest time after a start for which a file that was missed by an earlier process is remembered.
    /// Otherwise a clock that is only set after the start would have all such files forgotten.
    private static let memoryAfterStart = Duration.seconds(3600)
    /// Most files that are remembered as gone, of all holders.
    static let mostMissing = 2048
    /// The same while files wait to be compared with the remembered ones: quick rotations make copies faster
    /// than they can be compared, and the oldest copies are compared last.
    static let mostWhileWaiting = 8 * mostMissing
    /// Most marks that are kept of a file that is gone, to save space in the queue; the last ones.
    private static let marksOfMissing = 8

    /// The checkpoints by file.
    private(set) var kept: [FileID: Checkpoint]
    /// Index of the checkpoints by stream and first bytes, to recognise copies and archives.
    private(set) var contents = ContentIndex<FileID>()
    /// Inode numbers of the checkpoints at the start, to find files under names that are not read otherwise.
    /// Used only during the first listing.
    var inodes: Set<UInt64> = []
    /// The bytes that were unread at the last stop.
    private var unreadBeforeStart: [FileID: CutOff] = [:]
    /// Drop files that stay and were seen; nil once the first listing has ended.
    private var present: Set<FileID>? = []
    /// Drop files that were read to the end and stay, by path. They are known by identity, and a deletion
    /// names the path only. A file with several names is not in it: it may be there under another one.
    private var staying = HashIndex<String, FileID>()
    /// Files that are gone, by holder, in the order in which they were missed. The key nil has the files that
    /// were missed together with their directories: these may all come back with a mount, so they do not
    /// count for the bound.
    private var missing: [Holder?: FIFO<Missed>] = [:]
    /// The files that are gone and count for the bound, each with its holder. Entries of `missing` outlive
    /// this: rotation that renames a thousand archives makes a thousand entries, and if they counted, the
    /// contents whose copies are still to come would be forgotten, and their copies be read again.
    private var counted: [FileID: Holder] = [:]
    /// How many files of each holder are in `counted`.
    private var counts: [Holder: Int] = [:]
    /// The latest time at which a file was missed, in milliseconds since 1970. Later times are never lower,
    /// so that the order of files survives a clock that is set back.
    private var latest: Int64 = 0

    /// An entry of `missing`.
    private struct Missed {
        var id: FileID
        /// The time in the file's checkpoint when the entry was made. If the checkpoint has another time by
        /// now, the file came back and was missed again, and this entry is stale.
        var since: Int64?
        /// The time of the entry by the monotonic clock.
        var noted: BootInstant
        /// Whether an earlier process missed the file first.
        var isOlder: Bool
    }

    private let joinedTops: Set<[UInt8]>

    /// Sizes of the tables, for tests.
    var sizes: [String: Int] {
        [
            "remembered": kept.count, "contents": contents.count, "staying": staying.count,
            "missing": missing.values.reduce(0) { $0 + $1.count }, "counted": counted.count,
        ]
    }

    /// - Parameter joinedTops: the same as for `Holder`.
    init(_ checkpoints: [Checkpoint], joinedTops: Set<[UInt8]> = []) {
        self.joinedTops = joinedTops
        kept = Dictionary(checkpoints.map { (FileID(bytes: $0.key), $0) }) { _, last in last }
        for (id, checkpoint) in kept {
            guard let trace = FileTrace(checkpoint.state) else { continue }
            inodes.insert(trace.inode)
            latest = max(latest, trace.missingSince ?? 0)
            enter(id, checkpoint, trace)
            // Without a fingerprint no copy could be recognised, so nothing could be known to be lost.
            if let end = trace.unreadEnd, end > checkpoint.offset, checkpoint.offset > 0, trace.hasContent,
                trace.missingSince == nil
            {
                unreadBeforeStart[id] = CutOff(
                    path: FileName(checkpoint.path), gone: id,
                    stream: Stream.of(checkpoint, trace, joinedTops: joinedTops)[0],
                    fingerprint: trace.fingerprint, begin: checkpoint.offset, end: end,
                    at: BootInstant(nanoseconds: 0), wasStopped: true)
            }
        }
    }

    /// Takes the bytes that were unread at the last stop, to wait for their files and copies.
    mutating func takeUnreadBeforeStart() -> [FileID: CutOff] {
        defer { unreadBeforeStart = [:] }
        return unreadBeforeStart
    }

    /// Adds a checkpoint to the index, if its content can be recognised.
    private mutating func enter(_ id: FileID, _ checkpoint: Checkpoint, _ trace: FileTrace) {
        guard trace.hasContent else { return }
        contents.add(id, trace.fingerprint, to: Stream.of(checkpoint, trace, joinedTops: joinedTops))
    }

    /// Keeps a checkpoint, in place of an earlier one of the same file.
    mutating func keep(_ checkpoint: Checkpoint) {
        let id = FileID(bytes: checkpoint.key)
        remove(id)
        kept[id] = checkpoint
        if let trace = FileTrace(checkpoint.state) {
            enter(id, checkpoint, trace)
        }
    }

    /// Keeps the checkpoint of a drop file that is still there.
    mutating func keepPresent(_ checkpoint: Checkpoint) {
        keep(checkpoint)
        see(FileID(bytes: checkpoint.key))
    }

    /// Notes that a drop file is there. Otherwise it would count as missing at the end of the first listing.
    mutating func see(_ id: FileID) {
        if kept[id] != nil {
            present?.insert(id)
        }
    }

    /// Keeps a checkpoint that says that a drop file was read to the end, and stays.
    ///
    /// - Parameter archive: what was read of an archive; nil if it is to be read from its beginning once it
    ///   changes.
    mutating func keepDone(
        _ id: FileID, at path: FileName, _ status: FileStatus, _ archive: ReadArchive? = nil
    ) -> Checkpoint {
        var trace = FileTrace()
        trace.doneVersion = RememberedFiles.version(of: status)
        if let archive {
            trace.fingerprint = archive.fingerprint
            trace.add(archive.mark)
            trace.taken = archive.taken
        }
        let checkpoint = Checkpoint(key: id.bytes, path: path.text, offset: status.size, state: trace.encoded)
        keepPresent(checkpoint)
        if status.links <= 1 {
            staying.add(id, to: checkpoint.path)
        }
        return checkpoint
    }

    /// Whether a drop file that stays was read to the end and has not changed since.
    func isDone(_ id: FileID, _ status: FileStatus) -> Bool {
        guard let checkpoint = kept[id], let done = FileTrace(checkpoint.state)?.doneVersion else {
            return false
        }
        return done == RememberedFiles.version(of: status)
    }

    /// What was read of an archive that stays, and the size that it had then; nil if that is not known, or if
    /// it was not read to its end.
    func readArchive(_ id: FileID) -> (content: ReadArchive, size: Int64)? {
        guard let checkpoint = kept[id], let trace = FileTrace(checkpoint.state), trace.doneVersion != nil,
            let taken = trace.taken, let mark = trace.marks.last
        else { return nil }
        return (ReadArchive(fingerprint: trace.fingerprint, mark: mark, taken: taken), checkpoint.offset)
    }

    /// Whether a file was read as an append file, whatever its name is now.
    func isAppendFile(_ id: FileID) -> Bool {
        guard let checkpoint = kept[id], checkpoint.offset > 0, let trace = FileTrace(checkpoint.state) else {
            return false
        }
        return trace.doneVersion == nil
    }

    /// A hash of size and modification time, which differs if the content was changed since.
    private static func version(of status: FileStatus) -> UInt64 {
        var numbers = (status.size, status.modified.nanoseconds)
        return withUnsafeBytes(of: &numbers) { ByteHash.of($0) }
    }

    @discardableResult
    mutating func remove(_ id: FileID) -> Checkpoint? {
        guard let checkpoint = kept.removeValue(forKey: id) else { return nil }
        uncount(id)
        if let trace = FileTrace(checkpoint.state), trace.hasContent {
            contents.remove(id, trace.fingerprint, from: Stream.of(checkpoint, trace, joinedTops: joinedTops))
        }
        staying.remove(id, from: checkpoint.path)
        return checkpoint
    }

    /// The remembered contents of some streams that a file with this head begins with. The index uses hashes
    /// only, so the streams are compared here.
    func contents(of streams: [Stream], _ head: Head) -> [(streams: [Stream], trace: FileTrace)] {
        var ids: Set<FileID> = []
        for stream in streams { contents.beginning(head, of: stream) { ids.insert($0) } }
        return ids.compactMap { id in
            guard let checkpoint = kept[id], let trace = FileTrace(checkpoint.state) else { return nil }
            let own = Stream.of(checkpoint, trace, joinedTops: joinedTops)
            return own.contains(where: streams.contains) ? (own, trace) : nil
        }
    }

    /// The time since when a file is gone, in milliseconds since 1970; nil if it is not known to be gone.
    private static func missingSince(_ checkpoint: Checkpoint, _ trace: FileTrace?) -> Int64? {
        trace.map { $0.missingSince } ?? ObjectSplitter.Resumption.missingSince(checkpoint)
    }

    /// Remembers a file that is gone.
    ///
    /// - Parameters:
    ///   - trace: the file's trace; nil for a drop file that was read in part.
    ///   - isAway: whether the file's directory is gone or cannot be read. It may come back with all of its
    ///     files, however many.
    ///   - hasWaiting: whether files that may be copies were not compared yet.
    ///   - pass: gets the checkpoint for the next commit.
    mutating func miss(
        _ checkpoint: Checkpoint, _ trace: FileTrace?, isAway: Bool, at time: any TimeSource,
        hasWaiting: Bool = false,
        in pass: inout Pass
    ) {
        var checkpoint = checkpoint
        let before = RememberedFiles.missingSince(checkpoint, trace)
        let isOlder = before != nil
        let since = before ?? max(time.wallTime.milliseconds, latest.addingSaturating(1))
        latest = max(latest, since)
        if var trace {
            trace.missingSince = since
            trace.unreadEnd = nil
            trace.modified = nil
            trace.marks = Array(trace.marks.suffix(RememberedFiles.marksOfMissing))
            checkpoint.state = trace.encoded
        } else if let position = ObjectSplitter.Resumption(checkpoint) {
            checkpoint.state = position.encoded(missingSince: since)
        }
        let id = FileID(bytes: checkpoint.key)
        // At a start most checkpoints are unchanged; writing them all again would make a huge commit.
        if kept[id] != checkpoint {
            keep(checkpoint)
            pass.keep(checkpoint, of: id)
        }
        let missed = Missed(id: id, since: since, noted: time.bootTime, isOlder: isOlder)
        let holder =
            isAway
            ? nil : Holder(of: checkpoint.path.utf8, owner: trace?.owner, joinedTops: joinedTops).pooled
        missing[holder, default: FIFO()].append(missed)
        uncount(id)
        if let holder {
            counted[id] = holder
            counts[holder, default: 0] += 1
        }
        dropStale(of: holder)
        forget(of: holder, at: time, in: &pass)
        let most = hasWaiting ? RememberedFiles.mostWhileWaiting : RememberedFiles.mostMissing
        // The holder with the most files gives up its oldest, so that one app's rotations do not have another
        // app's copies read again.
        while counted.count > most, let largest = counts.max(by: { $0.value < $1.value })?.key {
            forget(of: largest, at: time, atLeast: 1, in: &pass)
        }
    }

    /// A file is not gone any more, or is forgotten.
    private mutating func uncount(_ id: FileID) {
        guard let holder = counted.removeValue(forKey: id), let count = counts[holder] else { return }
        counts[holder] = count > 1 ? count - 1 : nil
    }

    /// Forgets a holder's files that have been gone for long, and at least `least` of the oldest. Stale
    /// entries are only removed from the list.
    private mutating func forget(
        of holder: Holder?, at time: any TimeSource, atLeast least: Int = 0, in pass: inout Pass
    ) {
        let wall = time.wallTime
        let boot = time.bootTime
        var forgotten = 0
        while let first = missing[holder]?.first {
            let isMissing = isCurrent(first)
            let mayGo = !isMissing || forgotten < least || RememberedFiles.isOld(first, at: wall, boot)
            guard mayGo else { break }
            _ = missing[holder]?.popFirst()
            guard isMissing else { continue }
            remove(first.id)
            pass.forget(first.id)
            forgotten += 1
        }
        // Otherwise the caller, which asks while there are too many, would never end.
        assert(forgotten >= least, "a file that counts has an entry in the list of its holder")
        if missing[holder]?.isEmpty == true {
            missing[holder] = nil
            if let holder, forgotten < least {
                counts[holder] = nil
            }
        }
    }

    /// Drops stale entries once they are most of a list: a directory that comes and goes leaves one for each
    /// of its files each time, and the first entry, which may be valid for a day, keeps all others in the
    /// list.
    private mutating func dropStale(of holder: Holder?) {
        let current = holder.map { counts[$0] ?? 0 } ?? kept.count
        guard let list = missing[holder], list.count > 2 * current + 64 else { return }
        var valid = FIFO<Missed>()
        var seen: Set<FileID> = []
        for missed in list.values where isCurrent(missed) && seen.insert(missed.id).inserted {
            valid.append(missed)
        }
        missing[holder] = valid
    }

    /// Whether a file is still missing since the time of its entry.
    private func isCurrent(_ missed: Missed) -> Bool {
        let since = kept[missed.id].flatMap { RememberedFiles.missingSince($0, FileTrace($0.state)) }
        return since != nil && since == missed.since
    }

    /// Whether a file has been gone for so long that no copy is expected.
    private static func isOld(_ missed: Missed, at wall: Timestamp, _ boot: BootInstant) -> Bool {
        let age = wall - Timestamp(milliseconds: missed.since ?? 0)
        // A time in the future means that the clock was wrong then or is wrong now. Then only the monotonic
        // clock of this process counts.
        let isPlausible = age >= .zero
        guard age > memory || !isPlausible else { return false }
        return boot - missed.noted > (missed.isOlder && isPlausible ? memoryAfterStart : memory)
    }

    /// Whether files stay that `stayed` can find. If not, the path of a deleted name need not be built.
    var hasStaying: Bool { !staying.isEmpty }

    /// A name is gone: the drop files that were read and stayed there, for `miss`. Otherwise each archive
    /// that rotation removes would be remembered until the next start.
    mutating func stayed(at path: FileName) -> [(checkpoint: Checkpoint, trace: FileTrace)] {
        var gone: [(Checkpoint, FileTrace)] = []
        let path = path.text
        staying.forEach(path) { id in
            // The index goes by hashes.
            guard let checkpoint = kept[id], checkpoint.path == path, let trace = FileTrace(checkpoint.state),
                trace.missingSince == nil
            else { return }
            gone.append((checkpoint, trace))
        }
        for (checkpoint, _) in gone { present?.remove(FileID(bytes: checkpoint.key)) }
        return gone
    }

    /// A file that stays was found: it may have another path than before, and it no longer counts as gone if
    /// it was renamed while its directory was listed, or came back with its directory. Otherwise it would be
    /// forgotten a day later and read again.
    ///
    /// - Parameter links: how many names the file has.
    mutating func found(_ id: FileID, at path: FileName, links: UInt64, in pass: inout Pass) {
        guard var checkpoint = kept[id], var trace = FileTrace(checkpoint.state) else { return }
        let wasMissing = trace.missingSince != nil
        let path = path.text
        if wasMissing || checkpoint.path != path {
            trace.missingSince = nil
            checkpoint.state = trace.encoded
            checkpoint.path = path
            keep(checkpoint)
        }
        // A path alone is not worth a commit: it is for people, and noticed again after a start.
        if wasMissing {
            pass.keep(checkpoint, of: id)
        }
        if links <= 1 {
            staying.add(id, to: path)
        } else {
            staying.remove(id, from: path)
        }
    }

    /// Ends the first listing: returns the files that were not found, in the order in which they went
    /// missing.
    mutating func endFirstListing() -> [(id: FileID, checkpoint: Checkpoint, trace: FileTrace?)] {
        inodes = []
        // The caller calls `miss` for each of them in this order, including files that were missed before, so
        // the lists are built again.
        missing = [:]
        counted = [:]
        counts = [:]
        let unseen = kept.filter { present?.contains($0.key) != true }.map { ($0, $1, FileTrace($1.state)) }
        present = nil
        func since(_ file: (FileID, Checkpoint, FileTrace?)) -> Int64 {
            RememberedFiles.missingSince(file.1, file.2) ?? .max
        }
        return unseen.sorted { since($0) < since($1) }
    }

    /// Shrinks the tables if most files of the last stop were found. True if they shrank. With a million
    /// files the unused part is half of all memory.
    mutating func release() -> Bool {
        guard kept.capacity > 4 * kept.count + 4096 else { return false }
        kept = Dictionary(uniqueKeysWithValues: kept.map { ($0.key, $0.value) })
        contents.release()
        return true
    }

    /// Number of entries for which the tables have memory, for tests.
    var capacity: Int { max(kept.capacity, contents.capacity) }
}
