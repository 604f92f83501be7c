import EventLoops
import Model
@testable import Spool
import TestKit

/// What is durable: it survives the agent.
final class ModelQueue {
    /// How often each line arrived.
    var lines: [Int: Int] = [:]
    var checkpoints: [[UInt8]: Checkpoint] = [:]
    var givenUp: Int64 = 0
}

/// A reader without I/O: it does what `SpoolReader` does with its descriptors, and asks and tells the same `Streams`.
final class ModelAgent {
    struct Commit {
        var checkpoints: [Checkpoint]
        var forgotten: [[UInt8]]
        var covered: [CoveredFile]
        var lines: [Int]
        var archives: [String]
    }

    let queue: ModelQueue
    let disk: ModelDisk
    let time: ManualTime
    var random: SplitMix64
    var streams: Streams
    var pass = Pass()
    var directories: [String: SpoolDirectory] = [:]
    /// Files that are open.
    var open: [AppendFile: ModelFile] = [:]
    let mostOpen: Int
    var ready: [AppendFile] = []
    var later: [(due: BootInstant, file: AppendFile)] = []
    var lines: [Int] = []
    var commits: [Commit] = []
    var archives: [(path: String, due: BootInstant, version: Int64)] = []
    var inHand: Set<FileID> = []
    var removable: [String] = []
    let settleTime = Duration.seconds(1)
    let isPolling: Bool
    /// Told what it does, for people.
    var tell: ((String) -> Void)?

    init(_ disk: ModelDisk, _ queue: ModelQueue, _ time: ManualTime, isPolling: Bool, seed: UInt64) {
        self.isPolling = isPolling
        (self.disk, self.queue, self.time) = (disk, queue, time)
        random = SplitMix64(seed: seed)
        mostOpen = 1 + Int(random.next() % 6)
        streams = Streams(Array(queue.checkpoints.values), settleTime: settleTime, most: .max, time: time)
        for path in ["a", "a/old"] {
            directories[path] = SpoolDirectory(
                path: FileName(path), depth: 1, id: FileID(bytes: Array(path.utf8)), 0)
        }
        for path in disk.names.keys.sorted() where random.next() % 2 == 0 { notice(path) }
    }

    /// Whether not all directories were listed yet.
    var isStarting = true
    var now: BootInstant { time.bootTime }

    func place(_ path: String) -> (SpoolDirectory, FileName)? {
        guard let slash = path.lastIndex(of: "/"), let directory = directories[String(path[..<slash])] else {
            return nil
        }
        return (directory, FileName(String(path[path.index(after: slash)...])))
    }

    /// Whether a shorter copy of a file can be known by a place that was read: of one that was read in one commit, or is
    /// shorter than a fingerprint, it cannot be.
    func canKnow(_ file: ModelFile, copyOf size: Int) -> Bool {
        func isKnown(_ trace: FileTrace, _ taken: Mark) -> Bool {
            var trace = trace
            trace.add(taken)
            return taken.offset <= size
                || trace.fingerprint.length <= size
                    && trace.marks.suffix(8).contains { $0.offset > 0 && $0.offset <= size }
        }
        let kept = queue.checkpoints[file.id.bytes].flatMap { FileTrace($0.state) }
        if let kept, let last = kept.marks.last, !isKnown(kept, last) { return false }
        return streams.files[file.id].map { isKnown($0.trace, $0.taken) } ?? true
    }

    /// From where on a file that is cut to a length may be read again: from the highest mark that is left, now or after a kill.
    func mark(in file: ModelFile, below size: Int) -> Int {
        func highest(_ trace: FileTrace, _ taken: Mark) -> Int {
            Int(([taken] + trace.marks).map(\.offset).filter { $0 <= size }.max() ?? 0)
        }
        let kept = queue.checkpoints[file.id.bytes].flatMap { FileTrace($0.state) }
        let known = streams.files[file.id].map { highest($0.trace, .start) }
        return min(kept.map { highest($0, .start) } ?? 0, known ?? .max)
    }

    /// Whether reading is not beyond the end of a file, as far as this agent and the next one know.
    func isWithin(_ file: ModelFile) -> Bool {
        let offsets = [queue.checkpoints[file.id.bytes]?.offset, streams.files[file.id]?.taken.offset]
        return offsets.allSatisfy { $0 ?? 0 <= file.bytes.count }
    }

    func isCut(_ path: String) -> Bool { disk.names[path].flatMap { streams.files[$0.id] }?.stage == .cut }

    /// Whether it is known for a second that there is something, and it was not read yet.
    func isUnread(_ path: String) -> Bool {
        guard let file = disk.names[path].flatMap({ streams.files[$0.id] }) else { return false }
        return file.isSuspect ? now - file.stageSince >= .seconds(1) : file.taken.offset == 0 || file.isReady
    }

    // MARK: What is seen

    /// Takes up changes, and lists everything.
    func look(all: Bool, changes: Int) throws {
        for change in disk.takeChanges(changes == .max ? disk.changes.count : changes) { take(change) }
        guard all || isStarting else { return }
        for directory in directories.values {
            for file in directory.files.values { lookAgain(file) }
        }
        for path in disk.names.keys.sorted() { notice(path) }
        for directory in directories.values { directory.wasListed = true }
        if isStarting {
            isStarting = false
            for (_, checkpoint, trace) in streams.remembered.endFirstListing() {
                streams.miss(checkpoint, trace, hasWaiting: !archives.isEmpty, in: &pass)
            }
        }
    }

    func take(_ change: ModelChange) {
        switch change {
        case .created(let path): notice(path)
        case .modified(let path):
            guard let (directory, name) = place(path) else { return }
            if let file = directory.files[name] { changed(file) } else { notice(path) }
        case .deleted(let path):
            guard let (directory, name) = place(path) else { return }
            archiveGone(path)
            if let file = directory.files[name] { displaced(file) }
        case .moved(let old, let new):
            guard let (directory, name) = place(old) else { return }
            let earlier: Streams.EarlierName = name.isRotatedName ? .rotated(name) : .current(name)
            guard let file = directory.files[name] else {
                return notice(new, was: name.kind == .append ? earlier : .unknown)
            }
            displaced(file)
            guard let named = disk.names[new], let (target, newName) = place(new) else {
                // It has been renamed once more, which is told next.
                if let (target, newName) = place(new) { moved(file, target, newName) }
                return
            }
            if named.id == file.id { moved(file, target, newName) } else { notice(new, was: earlier) }
        }
    }

    /// An archive that was read, and stayed, is remembered for a day.
    func archiveGone(_ path: String) {
        for (checkpoint, trace) in streams.remembered.stayed(at: FileName(path)) {
            streams.miss(checkpoint, trace, hasWaiting: !archives.isEmpty, in: &pass)
        }
    }

    func lookAgain(_ file: AppendFile) {
        guard let named = disk.names[file.path.text] else {
            if open[file] != nil { displaced(file) }
            return makeReady(file)
        }
        guard named.id == file.id else { return makeReady(file) }
        if Int64(named.bytes.count) != file.length || file.modified != Timestamp(nanoseconds: named.version) {
            changed(file)
        }
        update(file, named)
    }

    func notice(_ path: String, was earlier: Streams.EarlierName = .unknown) {
        guard let named = disk.names[path], let (directory, name) = place(path) else { return }
        let id = named.id
        if let known = directory.files[name], known.id != id { displaced(known) }
        if let file = streams.files[id] {
            if file.directory !== directory || file.name != name || !file.hasName {
                moved(file, directory, name)
            }
            return update(file, named)
        }
        if case .drop = name.kind { return offer(path, named) }
        let isUnseen = if case .unknown = earlier { false } else { true }
        guard name.kind == .append || isUnseen || streams.remembered.kept[id] != nil else { return }
        let file = AppendFile(
            id, in: directory, name: name, owner: 0, size: Int64(named.bytes.count), now: now)
        _ = streams.meet(file, isRotated: name.isRotatedName || name.kind != .append, was: earlier)
        file.trace.inode = named.number
        directory.files[name] = file
        keepOpen(file, named)
        update(file, named)
        if file.isSuspect { makeReady(file) }
    }

    func moved(_ file: AppendFile, _ directory: SpoolDirectory, _ name: FileName) {
        if let other = directory.files[name], other !== file { displaced(other) }
        let isOwn = name.kind == .append
        let isNew = !file.hasName || file.name != name || file.directory !== directory
        tell?("moved \(file.path.text) to \(directory.path.text)/\(name.text)")
        streams.move(
            file, to: directory, name, isRotated: isNew && (name.isRotatedName || !isOwn), isOwn: isOwn)
        makeReady(file)
    }

    func displaced(_ file: AppendFile) {
        guard file.hasName else { return }
        tell?("displaced \(file.path.text)")
        streams.displace(file)
        makeReady(file)
    }

    func changed(_ file: AppendFile) {
        file.lastChange = now
        if file.end != .open { file.wasClosed = true }
        file.end = .open
        makeReady(file)
    }

    func update(_ file: AppendFile, _ named: ModelFile) {
        file.see(length: Int64(named.bytes.count))
        file.modified = Timestamp(nanoseconds: named.version)
        if file.size != file.taken.offset { makeReady(file) }
    }

    func makeReady(_ file: AppendFile) {
        file.wake(now)
        guard !file.isReady else { return }
        file.isReady = true
        ready.append(file)
    }

    func keepOpen(_ file: AppendFile, _ named: ModelFile) {
        open[file] = named
        while open.count > mostOpen {
            let idle = open.keys.filter { $0 !== file && $0.hasName }
            guard
                let victim = idle.min(by: {
                    ($0.hasUnread ? 1 : 0, $0.id.bytes.description) < (
                        $1.hasUnread ? 1 : 0, $1.id.bytes.description
                    )
                })
            else { return }
            open[victim] = nil
        }
    }

    /// The file, opened by its name if it is not open; nil if that leads to another.
    func reach(_ file: AppendFile) -> ModelFile? {
        if let named = open[file] { return named }
        guard file.hasName, let named = disk.names[file.path.text], named.id == file.id else { return nil }
        keepOpen(file, named)
        return named
    }

    // MARK: Commits

    func beginCommit() {
        guard commits.count < 2, !lines.isEmpty || !pass.isEmpty || !removable.isEmpty else { return }
        var closed = pass
        pass = Pass()
        let (checkpoints, covered) = streams.close(&closed)
        commits.append(
            Commit(
                checkpoints: checkpoints + closed.checkpoints.values,
                forgotten: closed.forgotten.map(\.bytes),
                covered: covered,
                lines: lines, archives: removable))
        lines = []
        removable = []
    }

    func endCommit() throws {
        guard !commits.isEmpty else { return }
        let commit = commits.removeFirst()
        tell?("committed \(commit.lines.count) lines")
        for line in commit.lines {
            queue.lines[line, default: 0] += 1
            guard queue.lines[line] == 1 || disk.mayRepeat(line, at: now) else {
                throw ModelWorld.Failure(description: "repeated: line \(line)")
            }
        }
        for checkpoint in commit.checkpoints { queue.checkpoints[checkpoint.key] = checkpoint }
        for key in commit.forgotten { queue.checkpoints[key] = nil }
        for file in commit.covered {
            streams.covered(file)
            if streams.files[file.file.id] === file.file, file.file.committed >= file.file.size {
                streams.isRead(file.file)
            }
        }
        for path in commit.archives { disk.delete(path, isAgents: true) }
    }

    // MARK: What goes

    func checkAll() {
        for file in inOrder { check(file) }
        streams.cutOffs.giveUpOld(now, isHeldBack: false, suspected: streams.suspected)
        tellCutOffs()
    }

    /// A seed draws the same of them each time.
    private var inOrder: [AppendFile] { streams.files.values.sorted { $0.trace.inode < $1.trace.inode } }

    /// Looks at some files.
    func checkSome() {
        for file in inOrder where random.next() % 3 == 0 { check(file) }
        if random.next() % 4 == 0 {
            streams.cutOffs.giveUpOld(now, isHeldBack: commits.count > 1, suspected: streams.suspected)
        }
        tellCutOffs()
    }

    func check(_ file: AppendFile) {
        guard streams.files[file.id] === file, !file.isReady, file.stage == .reading,
            now - file.lastChange >= settleTime,
            !file.hasName || file.isRotated
        else { return }
        guard let named = reach(file) else { return makeReady(file) }
        guard named.writers == 0 else { return }
        if Int64(named.bytes.count) != file.length || file.modified != Timestamp(nanoseconds: named.version) {
            file.lastChange = now
            return makeReady(file)
        }
        guard file.committed >= file.size, !file.hasUnread else { return }
        if file.hasName, let path = named.path { disk.delete(path, isAgents: true) }
        leave(file)
    }

    func leave(_ file: AppendFile) {
        open[file] = nil
        tell?("leave \(file.path.text), taken to \(file.taken.offset) of \(file.size)")
        streams.leave(file, hasWaiting: !archives.isEmpty, in: &pass)
        tellCutOffs()
    }

    func tellCutOffs() {
        for cut in streams.cutOffs.takeGivenUp() {
            queue.givenUp += cut.end - cut.begin
            tell?("gave up \(cut.path.text) from \(cut.begin) to \(cut.end)")
        }
    }
}
