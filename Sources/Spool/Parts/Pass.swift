internal import Model

/// What the next commit will say about files, in addition to the lines that the sink holds.
struct Pass {
    /// Bytes of lines and quarantine records that the sink has taken; decides when a commit is due.
    var bytes = 0
    /// Whether the sink was given a quarantine record.
    var hasQuarantine = false
    /// Append files whose read position has changed; their checkpoints are made when the pass is closed.
    private(set) var files: [AppendFile] = []
    /// Checkpoints of drop files, of files that stay, and of files that are gone but may come back or be
    /// copied.
    private(set) var checkpoints: [FileID: Checkpoint] = [:]
    /// Files whose checkpoints the next commit deletes.
    private(set) var forgotten: Set<FileID> = []
    /// Drop files that were read to the end; each gets a done record and is removed after the commit.
    var done: [ClaimedFile] = []
    /// Done records to delete, because the removal of their files is durable.
    var unlinked: [DoneRecord] = []

    // The last call about a file counts: a file may be gone, come back under another name and be read on, all
    // in one pass.

    /// The read position of a file has changed.
    mutating func add(_ file: AppendFile) {
        guard !file.isDirty else { return }
        file.isDirty = true
        files.append(file)
    }

    /// A file is gone. Its checkpoint is kept by `keep` instead.
    mutating func remove(_ file: AppendFile) {
        guard file.isDirty else { return }
        file.isDirty = false
        files.removeAll { $0 === file }
    }

    /// Writes a checkpoint with the commit.
    mutating func keep(_ checkpoint: Checkpoint, of id: FileID) {
        checkpoints[id] = checkpoint
        forgotten.remove(id)
    }

    /// Deletes the checkpoint of a file with the commit.
    mutating func forget(_ id: FileID) {
        checkpoints[id] = nil
        forgotten.insert(id)
    }

    /// Drops what was said about a file before in this pass, because its checkpoint is made from its current
    /// position.
    mutating func supersede(_ id: FileID) {
        checkpoints[id] = nil
        forgotten.remove(id)
    }

    /// Count of checkpoints that the commit writes or deletes.
    var checkpointCount: Int { files.count + checkpoints.count + forgotten.count }

    /// Whether no checkpoint is written and deleted in one commit. The order of the two decides, and only the
    /// last call about a file may count.
    var isConsistent: Bool { checkpoints.keys.allSatisfy { !forgotten.contains($0) } }

    var isEmpty: Bool {
        bytes == 0 && !hasQuarantine && files.isEmpty && checkpoints.isEmpty && forgotten.isEmpty
            && done.isEmpty
            && unlinked.isEmpty
    }
}

/// A pass that is being committed, and what follows the commit.
struct ClosedPass {
    var progress: SpoolProgress
    /// The position up to which each append file will be durable.
    var files: [CoveredFile]
    /// Drop files to remove after the commit.
    var done: [ClaimedFile]
}

/// A drop file that was claimed: renamed to a hidden name that only the agent uses. Files that stay keep
/// their own name.
struct ClaimedFile {
    var id: FileID
    var directory: SpoolDirectory
    /// The name of the file now.
    var claim: FileName
    /// The app of the file; names the folder in the archive.
    var app: String
    /// The share of the reader's time, and of the bounds on stuck files, to which the file is charged.
    let share: String

    /// The path before the claim, for messages and checkpoints.
    var path: FileName { directory.path(of: claim.claimed ?? claim) }

    var record: DoneRecord { DoneRecord(claim: directory.path(of: claim).bytes, handle: id.bytes) }
}
