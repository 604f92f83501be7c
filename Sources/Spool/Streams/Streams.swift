internal import EventLoops
internal import Model

/// The known append files with their contents and read positions, and those of files that are gone.
///
/// `Streams` makes no system call. The reader, which has the descriptors, reports its observations, asks
/// where reading of a file continues (`Inquiry`), and reports what was taken. Whatever the next commit must
/// say goes into a `Pass`. So a model can test it without a disk (Tests/SpoolTests/Model).
///
/// The life of a file and the invariants are in `Streams+Invariants`; a stream is defined in `Stream`.
struct Streams {
    /// All known append files, by identity.
    private(set) var files = FileTable<FileID>()
    /// The same files by stream, to find the possible originals of a copy.
    private var index = HashIndex<Stream, AppendFile>()
    /// Files with bytes that are not in the queue, and the time since when. Not a field of the file, because
    /// most of a million files have no such time.
    private(set) var unread: [AppendFile: Timestamp] = [:]
    /// Files that lost their name and were not let go yet.
    private(set) var nameless = FileTable<FileID>()
    /// Files that may be copies and were not compared yet.
    var suspects = FileTable<FileID>()
    /// Contents and positions of files that are not known now.
    var remembered: RememberedFiles
    /// Unread bytes that disappeared and may turn up in a copy.
    var cutOffs: CutOffs
    let time: any TimeSource
    /// How long a file must be unchanged to count as quiet.
    let settleTime: Duration
    /// Most known files, approximately.
    private let most: Int
    /// Count of known files of each holder.
    private var counts: [Holder: Int] = [:]

    init(
        _ checkpoints: [Checkpoint], joinedTops: Set<[UInt8]> = [], settleTime: Duration, most: Int,
        time: any TimeSource
    ) {
        remembered = RememberedFiles(checkpoints, joinedTops: joinedTops)
        cutOffs = CutOffs(settleTime, beforeStart: remembered.takeUnreadBeforeStart())
        self.settleTime = settleTime
        self.most = most
        self.time = time
    }

    var now: BootInstant { time.bootTime }

    /// Entries of the index of streams, for tests.
    var indexedCount: Int { index.count }

    /// Adds a file that is not known.
    mutating func add(_ file: AppendFile) {
        files[file.id] = file
        enter(file)
        if file.isSuspect {
            suspects[file.id] = file
        }
        assertWhole(file)
    }

    /// Removes a file from all tables; nothing is remembered of it.
    mutating func remove(_ file: AppendFile) {
        if file.hasName, file.directory.files[file.name] === file {
            file.directory.files[file.name] = nil
        }
        files[file.id] = nil
        nameless[file.id] = nil
        suspects[file.id] = nil
        isRead(file)
        withdraw(file)
    }

    /// Adds a file to the index of streams and the count of its holder.
    private mutating func enter(_ file: AppendFile) {
        for stream in file.streams { index.add(file, to: stream) }
        counts[file.holder.pooled, default: 0] += 1
    }

    /// Undoes `enter`; must be called before the file's streams or holder change.
    private mutating func withdraw(_ file: AppendFile) {
        for stream in file.streams { index.remove(file, from: stream) }
        let holder = file.holder.pooled
        counts[holder, default: 1] -= 1
        if counts[holder] == 0 {
            counts[holder] = nil
        }
    }

    /// Whether a holder may have another known file. At the bound each holder still has room for its part, so
    /// that one app's million files do not keep another app's single file from being read.
    ///
    /// - Parameter divisor: 2 applies half of the bounds, so that directories are not listed again for every
    ///   single file.
    func hasRoom(for holder: Holder, dividedBy divisor: Int = 1) -> Bool {
        let part = max(4, most / (counts.count + 1))
        return files.count < most / divisor || counts[holder.pooled, default: 0] < part / divisor
    }

    /// Changes fields of a file that determine its streams or its holder (name, origin, directory, owner).
    /// Otherwise the index would keep the file under its old streams.
    mutating func change(_ file: AppendFile, _ body: (AppendFile) -> Void) {
        guard files[file.id] === file else { return body(file) }
        withdraw(file)
        body(file)
        enter(file)
    }

    /// Files of some streams. Matches by hash only, so it may return files of other streams: checking the
    /// streams of thousands of files would dominate the cost, and the content check that follows rejects
    /// strangers.
    func files(of streams: [Stream], where isMeant: (AppendFile) -> Bool) -> [AppendFile] {
        var files: Set<AppendFile> = []
        for stream in streams { index.forEach(stream) { if isMeant($0) { files.insert($0) } } }
        return Array(files)
    }

    /// Whether rotation may have given a name by inserting something before the extension (`app-1.log`): the
    /// name without it is the stem of a known stream.
    func mayBeRotated(_ name: FileName, of holder: Holder) -> Bool {
        let base = name.base
        guard base != name.stem else { return false }
        let stream = Stream(holder: holder, stem: base)
        return index.has(stream) || remembered.contents.has(stream)
    }

    /// Whether any content of some streams is known. If not, an archive need not be unpacked for comparison.
    func hasAny(of streams: [Stream]) -> Bool {
        streams.contains { index.has($0) || remembered.contents.has($0) }
    }

    /// The known contents of some streams with which a file begins. The first stream is that of the file's
    /// own name.
    ///
    /// - Returns: also whether the file, once it has more bytes, may begin with a further content.
    func contents(of streams: [Stream], _ head: Head) -> (contents: [KnownContent], mayGrow: Bool) {
        var contents: [KnownContent] = []
        func add(_ trace: FileTrace, _ taken: Mark, _ carrier: AppendFile?, _ own: [Stream]) {
            contents.append(
                KnownContent(
                    fingerprint: trace.fingerprint, taken: taken, marks: trace.marks, carrier: carrier,
                    isCutOff: carrier == nil && trace.inode == 0, origin: own[0].stem,
                    isOfOtherName: !own.contains(streams[0])))
        }
        let count = head.bytes.count
        var mayGrow = streams.contains { remembered.contents.hasLonger(than: count, of: $0) }
        let begun = files(of: streams) { file in
            let known = file.trace.fingerprint
            if !file.isSuspect, known.length > count {
                mayGrow = true
            }
            return !file.isSuspect && known.length > 0 && head.fingerprint(of: known.length) == known
        }
        for file in begun { add(file.trace, file.taken, file, file.streams) }
        for (own, trace) in remembered.contents(of: streams, head) {
            if let last = trace.marks.last {
                add(trace, last, nil, own)
            }
        }
        return (contents, mayGrow)
    }

    /// Notes that a file has bytes that are not in the queue, unless that is known.
    mutating func hasUnread(_ file: AppendFile, since time: Timestamp) {
        guard !file.isUnread else { return }
        file.isUnread = true
        unread[file] = time
    }

    /// Notes that all of a file is in the queue, or that nothing of it waits any more.
    mutating func isRead(_ file: AppendFile) {
        if file.isUnread {
            file.isUnread = false
            unread[file] = nil
            if unread.isEmpty {
                unread = [:]
            }
        }
        file.releaseActivity()
    }

    /// The name that a file had before it was seen, as inotify reported the rename.
    enum EarlierName {
        case unknown
        /// A name that an append file is written under. So the file was renamed and is not a copy.
        case current(FileName)
        /// A name that rotation gives.
        case rotated(FileName)
    }

    /// Adds a file that is not known. A remembered file continues at its position, and a file that may be a
    /// copy becomes a suspect, which is not read yet.
    ///
    /// - Parameter isRotated: whether rotation gives such names, or the name says nothing.
    /// - Returns: the offset of the file's checkpoint if no mark was kept for it, so that the bytes before it
    ///   cannot be compared.
    mutating func meet(_ file: AppendFile, isRotated: Bool, was earlier: EarlierName) -> Int64? {
        // A checkpoint at offset 0 only says that the file was seen; the file may still be a copy.
        let wasRead = (remembered.kept[file.id]?.offset ?? 0) != 0
        let isClaim = file.name.claimed != nil
        let mayBeCopy: Bool
        switch earlier {
        case .unknown:
            file.naming = isRotated || isClaim ? .rotated : .written
            mayBeCopy = file.isRotated || mayBeRotated(file.name, of: file.holder)
        case .current(let name), .rotated(let name):
            file.naming = .rotated
            file.origin = name
            mayBeCopy = if case .rotated = earlier { true } else { false }
        }
        if mayBeCopy, !wasRead, !isClaim {
            file.enter(.suspect, at: now)
        }
        cutOffs.found(file.id)
        let unreadable = resume(file)
        add(file)
        return unreadable
    }

    /// Restores the state of a file from its checkpoint. Returns the offset if the checkpoint has no mark for
    /// it.
    private mutating func resume(_ file: AppendFile) -> Int64? {
        // The file's entry in `missing` becomes stale, and is dropped when it is the oldest.
        guard let checkpoint = remembered.remove(file.id), checkpoint.offset >= 0 else { return nil }
        file.trace = FileTrace(checkpoint.state) ?? FileTrace()
        // Most files have the name that they had before. Then the file's own copy of it stays: the names of
        // 70,000 files took 4 MB twice.
        let origin = file.trace.origin ?? checkpoint.name
        if origin != file.origin {
            file.origin = origin
        }
        file.trace.missingSince = nil
        file.trace.owner = nil
        file.trace.origin = nil
        file.trace.modified = nil
        let unreadEnd = file.trace.unreadEnd
        file.trace.unreadEnd = nil
        guard let last = file.trace.marks.last, last.offset == checkpoint.offset else {
            return checkpoint.offset
        }
        file.taken = last
        file.committed = last.offset
        if let end = unreadEnd, end > last.offset, last.offset > 0 {
            // If the file was truncated or rewritten while no agent ran, the bytes up to here are looked for
            // in copies, as if the agent had seen it happen.
            file.reached = end
            file.cutTo = min(file.size, end)
        }
        return nil
    }

    /// Continues a file whose checkpoint has an offset without a mark, at the mark that was computed from the
    /// file.
    func goOn(_ file: AppendFile, at mark: Mark) {
        file.taken = mark
        file.committed = mark.offset
        assertWhole(file)
    }

    /// Skips the content that a file had when its pattern was seen for the first time. The file is no longer
    /// a suspect: it does not matter what it is a copy of.
    mutating func passOver(
        _ file: AppendFile, upTo mark: Mark, _ fingerprint: Fingerprint, in pass: inout Pass
    ) {
        if file.isSuspect {
            file.enter(.reading, at: now)
            suspects[file.id] = nil
        }
        took(file, upTo: mark, fingerprint, in: &pass)
    }

    /// Gives a file another name; usually rotation has renamed it.
    ///
    /// - Parameters:
    ///   - isRotated: whether rotation gives such names, or the name says nothing.
    ///   - isOwn: whether an append file may be written under the name.
    mutating func move(
        _ file: AppendFile, to directory: SpoolDirectory, _ name: FileName, isRotated: Bool, isOwn: Bool
    ) {
        if file.hasName {
            file.directory.files[file.name] = nil
        }
        if file.naming == .none || isRotated && name.claimed == nil {
            file.naming = .rotated
        }
        change(file) {
            $0.directory = directory
            $0.name = name
            // Rotation does not make this name from the original one, so the file is written under it from
            // now on.
            let own = name.claimed ?? name
            if isOwn, own.base != $0.origin.base {
                $0.origin = own
            }
        }
        nameless[file.id] = nil
        directory.files[name] = file
        assertWhole(file)
    }

    /// A file no longer has its name: it was removed, renamed to an unknown name, or replaced by another
    /// file.
    mutating func displace(_ file: AppendFile) {
        if file.directory.files[file.name] === file {
            file.directory.files[file.name] = nil
        }
        file.naming = .none
        nameless[file.id] = file
        assertWhole(file)
    }

    /// Removes a file that is gone, and remembers it for a while. The file has no descriptor and is not read
    /// any more.
    mutating func leave(_ file: AppendFile, hasWaiting: Bool, in pass: inout Pass) {
        remove(file)
        file.naming = .none
        file.enter(.reading, at: now)
        pass.remove(file)
        cutOff(file, from: file.taken.offset)
        guard file.taken.offset > 0 else { return pass.forget(file.id) }
        file.trace.add(file.taken)
        let checkpoint = Checkpoint(
            key: file.id.bytes, path: file.path.text, offset: file.taken.offset, state: [])
        miss(checkpoint, file.keptTrace, hasWaiting: hasWaiting, in: &pass)
    }

    /// Remembers the content of a file that was truncated or rewritten, because a copy of it may turn up
    /// later.
    mutating func rememberContent(of file: AppendFile, hasWaiting: Bool, in pass: inout Pass) {
        guard file.trace.fingerprint.length > 0, file.taken.offset > 0 else { return }
        var trace = file.keptTrace
        trace.inode = 0
        trace.missingSince = nil
        trace.add(file.taken)
        let id = FileID(ofContent: trace.fingerprint, upTo: file.taken, in: file.streams[0])
        let checkpoint = Checkpoint(key: id.bytes, path: file.path.text, offset: file.taken.offset, state: [])
        miss(checkpoint, trace, hasWaiting: hasWaiting, in: &pass)
    }

    /// Remembers a file that is missing (`RememberedFiles.miss`).
    ///
    /// - Parameter hasWaiting: whether archives wait to be compared.
    mutating func miss(
        _ checkpoint: Checkpoint, _ trace: FileTrace?, isAway: Bool = false, hasWaiting: Bool,
        in pass: inout Pass
    ) {
        cutOffs.missed(FileID(bytes: checkpoint.key), isAway: isAway, at: now)
        remembered.miss(
            checkpoint, trace, isAway: isAway, at: time, hasWaiting: !suspects.isEmpty || hasWaiting,
            in: &pass)
    }

    /// The sink has taken all bytes before a position, or they were read elsewhere.
    ///
    /// - Parameter fingerprint: of the beginning up to the position; nil if the file's fingerprint has its
    ///   full length already.
    mutating func took(
        _ file: AppendFile, upTo mark: Mark, _ fingerprint: Fingerprint?, in pass: inout Pass
    ) {
        assertForward(file, mark)
        file.taken = mark
        if file.reached != 0, mark.offset >= file.reached {
            file.reached = 0
        }
        file.scanned = 0
        file.holdsText = false
        file.wasClosed = false
        if let fingerprint, fingerprint.length > file.trace.fingerprint.length {
            file.trace.fingerprint = fingerprint
        }
        pass.add(file)
        assertWhole(file)
    }

    /// The agent stops: the next commit says how long the files with unread bytes are, so that the next start
    /// knows what is lost if they are gone. Only files whose lines are all durable: others may be those of a
    /// commit that has failed.
    func noteUnread(in pass: inout Pass) {
        let files = unread.keys.lazy.filter {
            $0.unreadEnd != nil && $0.committed > 0 && $0.committed == $0.taken.offset
        }
        for file in files.prefix(Streams.mostNotedUnread) { pass.add(file) }
    }

    /// Most files whose lengths are written at a stop, which must not take long.
    private static let mostNotedUnread = 1024

    /// Closes a pass: the checkpoints of files that were read since the last commit, and the positions that
    /// will be durable with them.
    func close(_ pass: inout Pass) -> (checkpoints: [Checkpoint], covered: [CoveredFile]) {
        var (checkpoints, covered): ([Checkpoint], [CoveredFile]) = ([], [])
        for file in pass.files {
            file.isDirty = false
            pass.supersede(file.id)
            file.trace.add(file.taken)
            covered.append(CoveredFile(file: file, offset: file.taken.offset, setbacks: file.setbacks))
            var trace = file.keptTrace
            trace.unreadEnd = file.unreadEnd
            trace.modified = file.modified.milliseconds / 1000
            checkpoints.append(
                Checkpoint(
                    key: file.id.bytes, path: file.path.text, offset: file.taken.offset,
                    state: trace.encoded))
        }
        return (checkpoints, covered)
    }

    /// A commit has made a position durable.
    func covered(_ covered: CoveredFile) {
        let file = covered.file
        // If the position moved backwards meanwhile, the durable bytes are those of the old content.
        if file.setbacks == covered.setbacks {
            file.committed = max(file.committed, covered.offset)
        }
        assertWhole(file)
    }
}

/// The position of a file that becomes durable with a commit, and the value of `setbacks` at that time.
struct CoveredFile {
    var file: AppendFile
    var offset: Int64
    var setbacks: UInt32
}
