internal import EventLoops
internal import Model

/// The append files that are known, what was read of them and of those that are gone, and which file carries what.
///
/// It makes no system call: whoever has the descriptors tells it what is seen, asks it where reading goes on (`Inquiry`), and tells it
/// what was taken. What the next commit must say goes into a `Pass`. The life of a file and what always holds: `Streams+Invariants`.
struct Streams {
    private(set) var files = FileTable<FileID>()
    private var index = HashIndex<Stream, AppendFile>()
    /// Those with bytes that are not in the queue.
    var unread = FileTable<FileID>()
    /// Those that lost their name and are not read to the end.
    private(set) var nameless = FileTable<FileID>()
    /// Those that may be copies and were not compared yet.
    var suspects = FileTable<FileID>()
    var remembered: RememberedFiles
    var cutOffs: CutOffs
    let time: any TimeSource
    /// How long a file must be unchanged to count as quiet.
    let settleTime: Duration
    /// How many files are known at most, about.
    private let most: Int
    private var counts: [Holder: Int] = [:]

    init(
        _ checkpoints: [Checkpoint], joinedTops: Set<[UInt8]> = [], settleTime: Duration, most: Int,
        time: any TimeSource
    ) {
        remembered = RememberedFiles(checkpoints, joinedTops: joinedTops)
        cutOffs = CutOffs(settleTime)
        (self.settleTime, self.most, self.time) = (settleTime, most, time)
    }

    var now: BootInstant { time.bootTime }

    mutating func add(_ file: AppendFile) {
        files[file.id] = file
        enter(file)
        if file.isSuspect { suspects[file.id] = file }
        assertWhole(file)
    }

    mutating func remove(_ file: AppendFile) {
        if file.hasName, file.directory.files[file.name] === file { file.directory.files[file.name] = nil }
        files[file.id] = nil
        nameless[file.id] = nil
        suspects[file.id] = nil
        isRead(file)
        withdraw(file)
    }

    private mutating func enter(_ file: AppendFile) {
        for stream in file.streams { index.add(file, to: stream) }
        counts[file.holder.pooled, default: 0] += 1
    }

    private mutating func withdraw(_ file: AppendFile) {
        for stream in file.streams { index.remove(file, from: stream) }
        let holder = file.holder.pooled
        counts[holder, default: 1] -= 1
        if counts[holder] == 0 { counts[holder] = nil }
    }

    /// Whether another file of a holder may be known. When there are as many as may be, each holder still has room for its part.
    ///
    /// - Parameter divisor: 2 asks whether half of the room is free.
    func hasRoom(for holder: Holder, dividedBy divisor: Int = 1) -> Bool {
        let part = max(4, most / (counts.count + 1))
        return files.count < most / divisor || counts[holder.pooled, default: 0] < part / divisor
    }

    mutating func change(_ file: AppendFile, _ body: (AppendFile) -> Void) {
        guard files[file.id] === file else { return body(file) }
        withdraw(file)
        body(file)
        enter(file)
    }

    /// As far as hashes tell: to ask thousands of files whose they are costs more than all else, and their bytes tell them apart.
    func files(of streams: [Stream], where isMeant: (AppendFile) -> Bool) -> [AppendFile] {
        var files: Set<AppendFile> = []
        for stream in streams { index.forEach(stream) { if isMeant($0) { files.insert($0) } } }
        return Array(files)
    }

    /// Whether a name may be one that rotation has given, with something before the extension: there is a stream of the name without.
    func mayBeRotated(_ name: FileName, of holder: Holder) -> Bool {
        let base = name.base
        guard base != name.stem else { return false }
        let stream = Stream(holder: holder, stem: base)
        return index.has(stream) || remembered.contents.has(stream)
    }

    /// Whether anything is known that an archive of some streams could be of.
    func hasAny(of streams: [Stream]) -> Bool { streams.contains { index.has($0) || remembered.contents.has($0) } }

    /// The contents known of the streams that a file under a name may belong to, its own first, that the file begins with.
    ///
    /// - Returns: also whether a file with these bytes may still become one that begins with another.
    func contents(of streams: [Stream], _ head: Head) -> (contents: [KnownContent], mayGrow: Bool) {
        var contents: [KnownContent] = []
        func add(_ trace: FileTrace, _ place: Mark, _ carrier: AppendFile?, _ own: [Stream]) {
            contents.append(
                KnownContent(
                    fingerprint: trace.fingerprint, place: place, marks: trace.marks, carrier: carrier,
                    isCutOff: carrier == nil && trace.inode == 0, origin: own[0].stem,
                    isOfOtherName: !own.contains(streams[0])))
        }
        let count = head.bytes.count
        var mayGrow = streams.contains { remembered.contents.hasLonger(than: count, of: $0) }
        let begun = files(of: streams) { file in
            let known = file.trace.fingerprint
            if !file.isSuspect, known.length > count { mayGrow = true }
            return !file.isSuspect && known.length > 0 && head.fingerprint(of: known.length) == known
        }
        for file in begun { add(file.trace, file.taken, file, file.streams) }
        for (own, trace) in remembered.contents(of: streams, head) {
            if let last = trace.marks.last { add(trace, last, nil, own) }
        }
        return (contents, mayGrow)
    }

    mutating func isRead(_ file: AppendFile) {
        file.unreadSince = nil
        unread[file.id] = nil
        file.rest()
    }

    /// The name that a file had before it was seen.
    enum EarlierName {
        case unknown
        /// An append file's own: it is no copy.
        case current(FileName)
        /// One that rotation gives.
        case rotated(FileName)
    }

    /// A file was found that is not known: one that was gone goes on where it was left, and one that may be a copy waits.
    ///
    /// - Parameter isRotated: whether its name is one that rotation gives, or says nothing.
    /// - Returns: the offset of its place, if that is all that can be read of what was kept: what is before it cannot be checked.
    mutating func meet(_ file: AppendFile, isRotated: Bool, was earlier: EarlierName) -> Int64? {
        // Of one of which nothing was read it was not known at the stop either.
        let wasRead = (remembered.kept[file.id]?.offset ?? 0) != 0
        let isClaim = file.name.claimed != nil
        let mayBeCopy: Bool
        switch earlier {
        case .unknown:
            file.naming = isRotated || isClaim ? .rotated : .written
            mayBeCopy = file.isRotated || mayBeRotated(file.name, of: file.holder)
        case .current(let name), .rotated(let name):
            (file.naming, file.origin) = (.rotated, name)
            mayBeCopy = if case .rotated = earlier { true } else { false }
        }
        if mayBeCopy, !wasRead, !isClaim { file.enter(.suspect, at: now) }
        cutOffs.found(file.id)
        let unreadable = resume(file)
        add(file)
        return unreadable
    }

    /// Takes over what was kept of a file.
    private mutating func resume(_ file: AppendFile) -> Int64? {
        // A file that is read again is taken out of `missing` when its turn there comes.
        guard let checkpoint = remembered.remove(file.id), checkpoint.offset >= 0 else { return nil }
        file.trace = FileTrace(checkpoint.state) ?? FileTrace()
        file.origin = file.trace.origin ?? checkpoint.name
        file.trace.missingSince = nil
        file.trace.owner = nil
        file.trace.origin = nil
        guard let last = file.trace.marks.last, last.offset == checkpoint.offset else { return checkpoint.offset }
        (file.taken, file.committed) = (last, last.offset)
        return nil
    }

    /// Its place was kept by its offset alone; this is the mark at that offset.
    func goOn(_ file: AppendFile, at mark: Mark) {
        (file.taken, file.committed) = (mark, mark.offset)
        assertWhole(file)
    }

    /// A file has another name, or another file has its name: it is being rotated. Gives the one that had the name.
    ///
    /// - Parameters:
    ///   - isRotated: whether rotation gives such names, or they say nothing.
    ///   - isOwn: whether an append file may be written under it.
    mutating func move(
        _ file: AppendFile, to directory: SpoolDirectory, _ name: FileName, isRotated: Bool, isOwn: Bool
    ) {
        if file.hasName { file.directory.files[file.name] = nil }
        if file.naming == .none || isRotated && name.claimed == nil { file.naming = .rotated }
        change(file) {
            $0.directory = directory
            $0.name = name
            // A name that rotation does not make of the one that it was written under is one that it is written under from now on.
            let own = name.claimed ?? name
            if isOwn, own.base != $0.origin.base { $0.origin = own }
        }
        nameless[file.id] = nil
        directory.files[name] = file
        assertWhole(file)
    }

    /// A file no longer has the name it had: removed, renamed to we know not what, or replaced by another.
    mutating func displace(_ file: AppendFile) {
        if file.directory.files[file.name] === file { file.directory.files[file.name] = nil }
        file.naming = .none
        nameless[file.id] = file
        assertWhole(file)
    }

    /// Lets go of a file that is gone, and remembers it for a while. It has no descriptor, and is not read on.
    mutating func leave(_ file: AppendFile, hasWaiting: Bool, in pass: inout Pass) {
        remove(file)
        file.naming = .none
        file.enter(.reading, at: now)
        pass.remove(file)
        cutOff(file, from: file.taken.offset)
        guard file.taken.offset > 0 else { return pass.forget(file.id) }
        file.trace.add(file.taken)
        let checkpoint = Checkpoint(key: file.id.bytes, path: file.path.text, offset: file.taken.offset, state: [])
        miss(checkpoint, file.keptTrace, hasWaiting: hasWaiting, in: &pass)
    }

    /// A file holds something else from now on: what was read of it is remembered, for a copy may turn up, however late.
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

    /// - Parameter hasWaiting: whether archives wait to be compared.
    mutating func miss(
        _ checkpoint: Checkpoint, _ trace: FileTrace?, isAway: Bool = false, hasWaiting: Bool, in pass: inout Pass
    ) {
        remembered.miss(
            checkpoint, trace, isAway: isAway, at: time, hasWaiting: !suspects.isEmpty || hasWaiting, in: &pass)
    }

    /// What a commit says about the files that were read since the last one, and how far they will be durable with it.
    func close(_ pass: inout Pass) -> (checkpoints: [Checkpoint], covered: [CoveredFile]) {
        var (checkpoints, covered): ([Checkpoint], [CoveredFile]) = ([], [])
        for file in pass.files {
            file.isDirty = false
            pass.supersede(file.id)
            file.trace.add(file.taken)
            covered.append(CoveredFile(file: file, offset: file.taken.offset, setbacks: file.setbacks))
            checkpoints.append(
                Checkpoint(
                    key: file.id.bytes, path: file.path.text, offset: file.taken.offset, state: file.keptTrace.encoded))
        }
        return (checkpoints, covered)
    }

    func covered(_ covered: CoveredFile) {
        let file = covered.file
        // Else the file was truncated meanwhile: what was durable was what it held before.
        if file.setbacks == covered.setbacks { file.committed = max(file.committed, covered.offset) }
        assertWhole(file)
    }
}

/// How far a file is durable with a commit, and how often its place had gone back by then.
struct CoveredFile {
    var file: AppendFile
    var offset: Int64
    var setbacks: UInt32
}
