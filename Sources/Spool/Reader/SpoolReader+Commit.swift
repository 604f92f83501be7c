internal import EventLoops
internal import Logs
internal import Model

struct Pass {
    var bytes = 0
    /// Whether the sink was given a quarantine record.
    var hasQuarantine = false
    private(set) var files: [AppendFile] = []
    /// Checkpoints of drop files, of files that stay, and of files that are gone but may come back or be copied.
    private(set) var places: [FileID: Checkpoint] = [:]
    private(set) var forgotten: Set<FileID> = []
    var done: [ClaimedFile] = []
    /// Records whose files are gone for good.
    var unlinked: [DoneRecord] = []

    // Of one file the last word counts: it may be gone, come back under another name and be read on, all in one pass.

    /// A file's place has changed.
    mutating func add(_ file: AppendFile) {
        guard !file.isDirty else { return }
        file.isDirty = true
        files.append(file)
    }

    /// A file is gone, and what it leaves is kept in its place.
    mutating func remove(_ file: AppendFile) {
        guard file.isDirty else { return }
        file.isDirty = false
        files.removeAll { $0 === file }
    }

    mutating func keep(_ checkpoint: Checkpoint, of id: FileID) {
        places[id] = checkpoint
        forgotten.remove(id)
    }

    /// Nothing is to be known of a file any more.
    mutating func forget(_ id: FileID) {
        places[id] = nil
        forgotten.insert(id)
    }

    /// What was read of a file is what counts, not what was said of it before under another name.
    mutating func supersede(_ id: FileID) {
        places[id] = nil
        forgotten.remove(id)
    }

    var isEmpty: Bool {
        bytes == 0 && !hasQuarantine && files.isEmpty && places.isEmpty && forgotten.isEmpty && done.isEmpty
            && unlinked.isEmpty
    }
}

/// A pass that is being committed, and what follows when it is.
struct ClosedPass {
    var progress: SpoolProgress
    /// How far each append file will be durable.
    var files: [CoveredFile]
    var done: [ClaimedFile]
}

/// A file under a name of ours.
struct ClaimedFile {
    var id: FileID
    var directory: SpoolDirectory
    var claim: FileName
    /// The app whose it was; for the archive.
    var app: String
    let share: String

    var record: DoneRecord { DoneRecord(claim: directory.path(of: claim).bytes, handle: id.bytes) }
}

extension SpoolReader {
    /// Drop files in one commit at most: their records and removals come in one piece.
    private static let mostDone = 512

    private static let mostPlaces = 2_048

    /// Whether the next thing to do is a commit.
    var isCommitDue: Bool {
        commits.isWanted || pass.bytes >= options.commitBytes || pass.done.count >= SpoolReader.mostDone
            || pass.files.count + pass.places.count + pass.forgotten.count >= SpoolReader.mostPlaces
    }

    /// Closes the pass and has it made durable. Reading goes on once the sink has closed its part.
    func beginCommit() {
        var closed = pass
        pass = Pass()
        commits.isWanted = false
        if let reading = drops.reading, let place = checkpoint(of: reading) { closed.keep(place, of: reading.id) }
        var progress = SpoolProgress()
        let (checkpoints, covered) = streams.close(&closed)
        progress.checkpoints = checkpoints + closed.places.values
        if options.place != nil {
            for index in progress.checkpoints.indices {
                progress.checkpoints[index].path = shown(FileName(progress.checkpoints[index].path))
            }
        }
        progress.forgotten = closed.forgotten.map(\.bytes)
        progress.done = closed.done.map(\.record)
        progress.unlinked = closed.unlinked
        commits.underWay += 1
        life.tasks += 1
        commits.last = now
        planCensus()
        commits.closing = ClosedPass(progress: progress, files: covered, done: closed.done)
        Task(executorPreference: loop) { await self.commit() }
    }

    private func commit() async {
        guard let closed = commits.closing else { return }
        // There is no suspension between here and the sink's first one, by which it has closed its part.
        commits.closing = nil
        wake()
        var isUnderWay = true
        do {
            try await sink.commit(closed.progress)
            counters.commits += 1
            commits.underWay -= 1
            isUnderWay = false
            for file in closed.files { covered(file) }
            wake()
            if !closed.done.isEmpty {
                try await sink.persist()
                remove(closed.done)
            }
        } catch {
            // Nothing after the last successful commit counts: the next start reads it again.
            if life.phase == .running || life.phase == .stopping {
                log.info("reading ends", ["reason": "\(error)"])
                pass = Pass()
                commits.isWanted = false
                drops.giveUpReading()
                life.phase = .stopping
            }
            if isUnderWay { commits.underWay -= 1 }
        }
        life.tasks -= 1
        wake()
    }

    private func covered(_ covered: CoveredFile) {
        streams.covered(covered)
        let file = covered.file
        guard streams.files[file.id] === file else { return }
        if file.committed >= file.size { streams.isRead(file) }
        considerLater(file)
    }

    /// Hands lines to the sink.
    ///
    /// - Parameter resume: called when the sink, which had parked the rest, wants it offered again.
    /// - Returns: how many bytes were taken; fewer than all means that a commit comes first, or that the file `isParked`.
    func hand(
        _ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64, resume: @escaping () -> Void
    ) -> Int {
        let taken = offer(lines, from: source, at: offset)
        if taken < lines.count { awaitSink(resume) }
        return taken
    }

    /// Hands lines to the sink. Of what it does not take, `awaitSink` is to be told.
    func offer(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        let taken = min(max(0, sink.take(lines, from: source, at: offset)), lines.count)
        pass.bytes += taken
        counters.bytesRead += ByteCount(Int64(taken))
        return taken
    }

    /// Has the rest of what was handed offered again: after a commit, or when the sink resumes its file.
    func awaitSink(_ resume: @escaping () -> Void) {
        commits.isParked = sink.park(resume)
        if !commits.isParked { commits.isWanted = true }
    }

    /// Puts what is too long to be an event into quarantine, whole or its beginning, and counts it.
    func tooLong(_ what: String, _ length: Int64, from source: SpoolSource, at offset: Int64, content: [UInt8]) {
        counters.linesTooLong += 1
        quarantine(
            .tooLong, QuarantineRecord.tooLong(what, length, longest: options.maxEventSize), from: source, at: offset,
            length: length, content: content)
    }

    /// Puts what cannot be an event into quarantine, with the next commit.
    func quarantine(
        _ reason: QuarantineRecord.Reason, _ detail: String, from source: SpoolSource, at offset: Int64, length: Int64,
        content: [UInt8]
    ) {
        pass.hasQuarantine = true
        // Many small records are a large commit.
        pass.bytes += 256 + source.path.utf8.count + content.count
        sink.quarantine(
            QuarantineRecord(
                reason: reason, detail: detail, app: source.app, path: source.path, offset: offset, length: length,
                content: content, time: time.wallTime, file: source.file))
    }
}

extension QuarantineRecord {
    /// The detail for a line or an event that is too long.
    static func tooLong(_ what: String, _ length: Int64, longest: Int) -> String {
        "the \(what) has \(length) bytes, \(longest) are allowed (spool.max_event_size)"
    }
}
