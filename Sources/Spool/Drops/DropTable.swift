internal import Model

// The life of a drop file that was opened, and the function of each transition:
//
//     waiting ──begin──▶ reading ◀──takeUp──▶ aside ◀──resume── parked
//     (a name)             │  │    setAside     ▲                 ▲
//                          │  └── park ─────────┼─────────────────┘
//                          │                    │ retry
//                          ├── awaitRetry ────▶ cut ──letGo──▶ (found again under its name)
//                          │
//                          └── wasTaken ──▶ committing ──wasRemoved──▶ gone; its record is in `unsynced`
//                                               │                        ▲
//                                               │ stick                  │ wasRemoved
//                                               ▼                        │
//      queued before the start ──stick──────▶ stuck ─────────────────────┘

/// The drop files and their stages, from a name that was seen to a removal that is durable.
///
/// A file waits by its name. Once it was opened, its identity has exactly one stage: with two stages the file
/// would be read twice, or removed while it is read. Everything else (counts, the paths of stuck files)
/// follows from the stages and is changed by `move` alone. A removed file has no stage: on a file system
/// without handles another file may have its identity before the removal is durable.
///
/// The table opens, reads and removes nothing: it names the next work, and the reader reports the result.
final class DropTable {
    /// The stage of a file, with the data that the stage needs.
    enum Stage {
        /// The file's content is being read. At most one file is in this stage.
        case reading(DropReading)
        /// The file was read in part, and other files go first.
        case aside(DropReading)
        /// The sink takes no more of the file for now.
        case parked(DropReading)
        /// The file ended too early, and is read once more after a pause.
        case cut(DropReading)
        /// The whole file was read; it is removed after the commit.
        case committing(ClaimedFile)
        /// The file is in the queue and still exists: it stays because of its bad lines, or could not be
        /// removed.
        case stuck(StuckFile)
        /// The file was in the queue before the reader started, and was not found yet.
        case doneBefore([DoneRecord])
    }

    /// Bounds, so that one app or owner cannot fill the memory.
    struct Limits {
        /// Most waiting files of an app or owner.
        var waiting: Int
        /// Most waiting files of all apps and owners together, approximately: each has an equal share.
        var waitingInAll: Int
        /// Most stuck files, approximately.
        var stuck: Int
        /// Most files that are aside or parked: each keeps a block in memory.
        static let open = 16
        /// Most files that wait for their second try. Further files that end too early are quarantined at
        /// once.
        static let cut = 256
        /// With this many waiting files, directories are listed only for apps with fewer than `few` of them.
        static let listed = 4096
        /// The number of waiting files below which an app's directories are listed again.
        static let few = 64
    }

    /// The next work.
    enum Work {
        /// A file that was begun before, whose turn it is.
        case read(DropReading)
        /// A file to open, and the share of the reader's time to which that is charged.
        case begin(PendingDrop, share: String)
        /// No file waits, or a parked file holds up the others.
        case nothing
    }

    private let limits: Limits
    /// Files that were read to their ends since the start.
    private(set) var countRead = 0
    /// Files that wait to be claimed and read, in one line for each app, or in the drop box for each owner.
    private var waiting = FairQueue<PendingDrop>()
    /// Directories with more files than may wait or be stuck, by app or owner; listed again when few are
    /// left.
    private var crowded: [String: [FileName: SpoolDirectory]] = [:]
    /// The stage of each file that was opened or has a done record; changed by `move` only.
    private var stages: [FileID: Stage] = [:]
    /// The file that is being read, or the parked file that blocks the others because too many are parked.
    private var current: FileID?
    /// The files in the stage `aside`, in the order of their turns.
    private var asides = FairQueue<FileID>()
    /// Whether a file in the stage `aside` goes before a fresh file of an equal share; toggles, so that both
    /// make progress.
    private var isAsideNext = false
    private var tally = Tally()
    private var claimsBefore = ClaimsBefore()
    /// Removed files whose removal is not durable yet.
    var unsynced = UnsyncedRemovals()

    /// - Parameter done: the queue's records of drop files whose events are all queued.
    init(_ limits: Limits, done: [DoneRecord] = []) {
        self.limits = limits
        claimsBefore = ClaimsBefore(done)
        for (id, records) in Dictionary(grouping: done, by: { FileID(bytes: $0.handle) }) {
            move(id, to: .doneBefore(records))
        }
    }

    // MARK: Files that wait

    /// Whether an app's directories should be listed for more files although files are waiting.
    func wantsMore(of line: String) -> Bool {
        waiting.count < Limits.listed || waiting.count(of: line) < Limits.few
    }

    /// Whether another file of an app or owner may wait. Each has room for at least four, however many apps
    /// there are.
    func mayWait(_ line: String) -> Bool {
        waiting.count(of: line) < min(limits.waiting, max(4, limits.waitingInAll / (waiting.lineCount + 1)))
    }

    /// Whether an app or owner may have another file that is stuck.
    ///
    /// - Parameter divisor: 2 applies half of the bound, so that a directory is not listed again for every
    ///   single file.
    func mayStick(_ line: String, dividedBy divisor: Int = 1) -> Bool {
        tally.stuck[line, default: 0] < max(4, limits.stuck / (tally.stuck.count + 1)) / divisor
    }

    func wait(_ drop: PendingDrop, in line: String) { waiting.append(drop, to: line) }

    /// Notes a directory with files for which an app or owner has no room. True if that is new.
    @discardableResult
    func crowd(_ line: String, in directory: SpoolDirectory) -> Bool {
        crowded[line, default: [:]].updateValue(directory, forKey: directory.path) == nil
    }

    var crowdedLines: [String] { Array(crowded.keys) }

    /// The directories to list again, because an app or owner has few waiting and few stuck files left.
    func takeCrowded(_ line: String) -> [SpoolDirectory] {
        guard !crowded.isEmpty, waiting.count(of: line) < Limits.few, mayStick(line, dividedBy: 2) else {
            return []
        }
        return crowded.removeValue(forKey: line).map { Array($0.values) } ?? []
    }

    // MARK: Whose turn it is

    /// Whether no file waits for its turn or is being read. Files in other stages wait for something else.
    var areAllRead: Bool { waiting.isEmpty && asides.isEmpty && current == nil }

    /// The used share of the app or owner whose file comes next; nil if no file waits.
    func least(_ shares: Shares) -> Int64? {
        if let current = reading(current) { return shares.spent(by: current.share) }
        guard let fresh = waiting.least(shares) else { return asides.least(shares) }
        return min(fresh, asides.least(shares) ?? .max)
    }

    /// The next work: the current file, or the next file of the app or owner that has used the least time.
    /// Files that were read in part and fresh files of equal shares take turns.
    ///
    /// - Parameters:
    ///   - mostOpen: number of files in the stage `aside` at which fresh files wait.
    ///   - mayBegin: whether a file may be opened now.
    func next(_ shares: Shares, mostOpen: Int, mayBegin: (PendingDrop) -> Bool) -> Work {
        if let current, let stage = stages[current] {
            guard case .reading(let drop) = stage else { return .nothing }
            return .read(drop)
        }
        isAsideNext.toggle()
        let aside = asides.least(shares) ?? .max
        let fresh = waiting.least(shares) ?? .max
        if aside < fresh || aside == fresh && isAsideNext, let drop = takeUp(shares) { return .read(drop) }
        let asides = self.asides
        if asides.count < min(Limits.open, mostOpen),
            let fresh = waiting.popFirst(
                shares,
                where: { line, drop in
                    DropTable.mayBegin(another: line, beside: asides) ? mayBegin(drop) : false
                })
        {
            return .begin(fresh.element, share: fresh.line)
        }
        return takeUp(shares).map { .read($0) } ?? .nothing
    }

    /// Continues with the next file in the stage `aside`; nil if no file is aside.
    private func takeUp(_ shares: Shares) -> DropReading? {
        guard let id = asides.popFirst(shares)?.element, case .aside(let drop)? = stages[id] else {
            return nil
        }
        current = id
        move(id, to: .reading(drop))
        return drop
    }

    /// Whether another file of an app or owner may be begun. An app with many large files may have four open
    /// ones, or one once half of all open ones are in use, so that other apps find room.
    func mayBegin(another line: String) -> Bool { DropTable.mayBegin(another: line, beside: asides) }

    private static func mayBegin(another line: String, beside asides: FairQueue<FileID>) -> Bool {
        let count = asides.count(of: line)
        return count == 0 || count < (asides.count < Limits.open / 2 ? 4 : 1)
    }

    // MARK: Stages

    /// Whether a file is being read or waits for its commit. It must not be opened again, or its events would
    /// be taken twice.
    func isInHand(_ id: FileID) -> Bool {
        switch stages[id] {
        case .reading, .aside, .parked, .cut, .committing: true
        case .stuck, .doneBefore, nil: false
        }
    }

    /// The done records of a file that the queue holds and that still exists; nil if the file must be read.
    func records(of id: FileID) -> [DoneRecord]? {
        switch stages[id] {
        case .stuck(let file): file.records
        case .doneBefore(let records): records
        case .reading, .aside, .parked, .cut, .committing, nil: nil
        }
    }

    /// Whether any file that the queue holds may still exist.
    var hasQueued: Bool { tally.isAnyQueued }

    /// The file that is being read.
    var reading: DropReading? { reading(current) }

    private func reading(_ id: FileID?) -> DropReading? {
        switch id.flatMap({ stages[$0] }) {
        case .reading(let drop), .aside(let drop), .parked(let drop), .cut(let drop): drop
        case .committing, .stuck, .doneBefore, nil: nil
        }
    }

    /// A file was opened and claimed, and is read next.
    func begin(_ drop: DropReading) {
        assert(current == nil, "a drop file is begun while another one is read")
        current = drop.id
        move(drop.id, to: .reading(drop))
    }

    /// Sets the current file aside, so that other files are read first. False if no other file waits.
    func setAside() -> Bool {
        guard let drop = reading, !waiting.isEmpty || !asides.isEmpty else { return false }
        current = nil
        line(up: drop)
        return true
    }

    /// Moves a file to the stage `aside` and queues it.
    private func line(up drop: DropReading) {
        move(drop.id, to: .aside(drop))
        asides.append(drop.id, to: drop.share)
    }

    /// The sink has parked the current file. False if too many files are parked; then the file stays current
    /// and blocks the others, because each parked file keeps memory.
    func park() -> Bool {
        guard let drop = reading else { return false }
        let hasRoom = tally.parked < Limits.open
        move(drop.id, to: .parked(drop))
        if hasRoom {
            current = nil
        }
        return hasRoom
    }

    /// The sink wants more of a file that it has parked.
    func resume(_ id: FileID) {
        guard case .parked(let drop)? = stages[id] else { return }
        guard id == current else { return line(up: drop) }
        move(id, to: .reading(drop))
    }

    /// The current file ended too early. False if too many files wait for their second try already.
    func awaitRetry() -> Bool {
        guard let drop = reading, tally.cut < Limits.cut else { return false }
        current = nil
        move(drop.id, to: .cut(drop))
        return true
    }

    /// The file with this identity, if it waits for its second try.
    func cut(_ id: FileID) -> DropReading? {
        guard case .cut(let drop)? = stages[id] else { return nil }
        return drop
    }

    /// A file was opened for its second try.
    func retry(_ id: FileID) {
        guard let drop = cut(id) else { return }
        line(up: drop)
    }

    /// Ends the stage of a file that cannot be read now, or that was read and stays. When its name is seen
    /// again the file is examined as a new one.
    func letGo(_ id: FileID) {
        assert(cut(id) != nil || id == current, "a drop file is let go that is not read")
        if id == current {
            current = nil
        }
        move(id, to: nil)
    }

    /// A file was read to its end.
    func wasRead() { countRead += 1 }

    /// Notes that the current file was read to its end.
    func wasTaken(_ file: ClaimedFile) {
        assert(file.id == current, "a drop file was taken that is not read")
        current = nil
        move(file.id, to: .committing(file))
    }

    /// A file that is in the queue cannot be removed, or has to stay. True if that is new.
    @discardableResult
    func stick(_ id: FileID, _ file: StuckFile) -> Bool {
        let isNew = !isStuck(id)
        move(id, to: .stuck(file))
        return isNew
    }

    func isStuck(_ id: FileID) -> Bool { stuck(id) != nil }

    func stuck(_ id: FileID) -> StuckFile? {
        guard case .stuck(let file)? = stages[id] else { return nil }
        return file
    }

    var allStuck: [(id: FileID, file: StuckFile)] {
        stages.compactMap { id, stage in
            guard case .stuck(let file) = stage else { return nil }
            return (id, file)
        }
    }

    /// The stuck file at a path, if any.
    func stuck(at path: FileName) -> FileID? { tally.stuckPaths.isEmpty ? nil : tally.stuckPaths[path] }

    /// A stuck file at a path was renamed, perhaps to a name that is not read. A file that is deleted under
    /// the old name from now on is another file, so its removal must not free this one's record.
    func movedAway(from path: FileName) { tally.stuckPaths[path] = nil }

    /// A file that the queue holds is gone. Its record is deleted once the removal is durable.
    ///
    /// - Returns: the file, if it was stuck.
    @discardableResult
    func wasRemoved(_ id: FileID) -> StuckFile? {
        assert(reading(id) == nil, "a drop file was removed while it is read")
        defer { move(id, to: nil) }
        return stuck(id)
    }

    /// Names of earlier runs' claims in a directory, to be looked at before other names; the second call for
    /// a directory returns none. These files must count for the bound of their app or owner before new files
    /// are read. Otherwise each restart would exceed the bound by some files.
    func takeNamesBefore(in directory: FileName) -> [FileName] {
        claimsBefore.takeNames(in: directory)
    }

    /// Removes and returns the records of files that an earlier run has read and that no longer exist. To be
    /// called once all directories were listed: files that no listing found are gone.
    func takeDoneBefore() -> [DoneRecord] {
        claimsBefore = ClaimsBefore()
        let gone = stages.compactMap { id, stage in
            if case .doneBefore(let records) = stage {
                (id: id, records: records)
            } else {
                nil
            }
        }
        for file in gone { move(file.id, to: nil) }
        return gone.flatMap(\.records)
    }

    /// Drops the files that are being read, because no further commit will succeed. The next start reads them
    /// from their last checkpoints.
    func giveUpReading() {
        for drop in openDrops { move(drop.id, to: nil) }
        asides = FairQueue()
        current = nil
    }

    // MARK: Figures

    /// Count of files that are being read, are aside, or wait to be read for the first or the second time.
    var countUnread: Int { waiting.count + asides.count + tally.cut + (current == nil ? 0 : 1) }

    /// Count of files for which `isInHand` is true.
    var countInHand: Int { stages.keys.count { isInHand($0) } }

    /// The file that is read, and those that are aside.
    var openDrops: [DropReading] { asides.values.compactMap { reading($0) } + (reading.map { [$0] } ?? []) }

    /// The files that wait for their second try.
    var allCut: [DropReading] { stages.keys.compactMap { cut($0) } }
}

extension DropTable {
    /// Counts that follow from the stages, kept so that thousands of files need not be searched.
    private struct Tally: Equatable {
        var parked = 0
        var cut = 0
        var doneBefore = 0
        /// Count of stuck files of each app or owner.
        var stuck: [String: Int] = [:]
        /// Stuck files by path; a renamed file has no entry.
        var stuckPaths: [FileName: FileID] = [:]

        var isAnyQueued: Bool { doneBefore > 0 || !stuck.isEmpty }

        /// Counts a file that enters a stage.
        mutating func enter(_ id: FileID, _ stage: Stage) {
            switch stage {
            case .parked: parked += 1
            case .cut: cut += 1
            case .doneBefore: doneBefore += 1
            case .stuck(let file):
                stuck[file.share, default: 0] += 1
                stuckPaths[file.path] = id
            case .reading, .aside, .committing: break
            }
        }

        /// Removes a file that leaves a stage from the counts.
        mutating func leave(_ id: FileID, _ stage: Stage) {
            switch stage {
            case .parked: parked -= 1
            case .cut: cut -= 1
            case .doneBefore: doneBefore -= 1
            case .stuck(let file):
                let left = stuck[file.share, default: 1] - 1
                stuck[file.share] = left == 0 ? nil : left
                // Another file may have the path by now.
                if stuckPaths[file.path] == id {
                    stuckPaths[file.path] = nil
                }
            case .reading, .aside, .committing: break
            }
        }
    }

    /// Changes a stage. All changes go through here, so that the tally stays correct and illegal transitions
    /// are caught in debug builds.
    private func move(_ id: FileID, to stage: Stage?) {
        let old = stages[id]
        assert(DropTable.mayFollow(old, stage), "a drop file goes from \(name(old)) to \(name(stage))")
        if let old {
            tally.leave(id, old)
        }
        stages[id] = stage
        if let stage {
            tally.enter(id, stage)
        }
    }

    /// Whether the picture at the beginning of this file has an arrow between two stages.
    private static func mayFollow(_ old: Stage?, _ new: Stage?) -> Bool {
        switch (old, new) {
        case (nil, .reading), (nil, .doneBefore), (.aside, .reading), (.parked, .reading): true
        case (.reading, .aside), (.parked, .aside), (.cut, .aside), (.reading, .parked), (.reading, .cut):
            true
        case (.reading, .committing), (.reading, nil), (.aside, nil), (.parked, nil), (.cut, nil): true
        // The queue holds the file, so it must never be read again.
        case (.committing, .stuck), (.stuck, .stuck), (.doneBefore, .stuck): true
        case (.committing, nil), (.stuck, nil), (.doneBefore, nil): true
        default: false
        }
    }

    /// The stage of a file, for people and tests.
    func stageName(of id: FileID) -> String { name(stages[id]) }

    private func name(_ stage: Stage?) -> String {
        switch stage {
        case .reading: "reading"
        case .aside: "aside"
        case .parked: "parked"
        case .cut: "cut"
        case .committing: "committing"
        case .stuck: "stuck"
        case .doneBefore: "doneBefore"
        case nil: "none"
        }
    }

    /// The first broken rule, found by counting everything again; nil if all rules hold. For tests.
    ///
    /// 1. The tally follows from the stages.
    /// 2. The queue of turns holds exactly the files in the stage `aside`, each of them once.
    /// 3. A file is in the stage `reading` exactly if it is the current one, or that one is parked.
    /// 4. A stuck file has a record, so that a restart does not read it again.
    func brokenRule() -> String? {
        var counted = Tally()
        for (id, stage) in stages { counted.enter(id, stage) }
        // If two stuck files had the same path one after the other, the index has at most one of them.
        counted.stuckPaths = tally.stuckPaths
        guard counted == tally, tally.stuckPaths.allSatisfy({ stuck($0.value)?.path == $0.key }) else {
            return "1: counted \(counted), known \(tally)"
        }
        let lined = asides.values.map { $0 }
        let aside = stages.keys.filter { name(stages[$0]) == "aside" }
        guard Set(lined) == Set(aside), lined.count == aside.count else {
            return "2: aside \(aside), in order \(lined)"
        }
        let read = stages.keys.filter { name(stages[$0]) == "reading" }
        let holder = current.map { name(stages[$0]) }
        guard read.allSatisfy({ $0 == current }), [nil, "reading", "parked"].contains(holder) else {
            return "3: reading \(read), current \(holder ?? "none")"
        }
        return allStuck.allSatisfy { !$0.file.records.isEmpty } ? nil : "4: a stuck file has no record"
    }
}
