internal import EventLoops
internal import Model

/// A drop file whose name was seen and which waits to be opened.
struct PendingDrop {
    var directory: SpoolDirectory
    var name: FileName
    /// Whether the file is known to be complete, because it was renamed to its name.
    var isComplete: Bool
    /// The owner of a file in the drop box, who determines its app; nil elsewhere, or if not known yet.
    var owner: UInt32?
}

/// A drop file that was opened and claimed, with the state of reading it and its last checkpoint.
final class DropReading {
    let file: ClaimedFile
    let source: SpoolSource
    /// The share of the reader's time to which reading is charged.
    let share: String
    /// Whether the file stays under its own name (`after_read = "keep"`, or an archive of a file that was
    /// read).
    let isKept: Bool
    /// Status when the file was opened.
    let status: FileStatus
    /// The end of the file when it ended too early; nil before its second try.
    private(set) var cut: Mark?
    /// Open while it is read.
    var descriptor: Descriptor?
    var content: DropReader
    /// The position in the last checkpoint; nil if there was no checkpoint.
    private(set) var checkpointed: ObjectSplitter.Resumption?

    /// - Parameter place: the position of a checkpoint, or behind the part of the content that was read from
    ///   another file; nil for the beginning.
    init(
        _ file: ClaimedFile, source: SpoolSource, share: String, format: DropFormat, isKept: Bool,
        status: FileStatus, descriptor: consuming Descriptor?, longest: Int,
        from position: ObjectSplitter.Resumption?
    ) {
        self.file = file
        self.source = source
        self.share = share
        self.isKept = isKept
        self.status = status
        self.descriptor = consume descriptor
        content = DropReader(format, longest: longest, from: position ?? .start)
        checkpointed = position
    }

    var id: FileID { file.id }

    /// Bytes that were not read yet, for figures.
    var unread: Int64 { max(0, status.size - content.position) }

    /// The checkpoint of a file that is read in part, for the next commit; nil if the position has not
    /// changed.
    func nextCheckpoint() -> Checkpoint? {
        guard content.taken.offset > 0, content.taken != checkpointed else { return nil }
        checkpointed = content.taken
        return lastCheckpoint
    }

    /// The last checkpoint; nil if there was none.
    var lastCheckpoint: Checkpoint? {
        checkpointed.map {
            let made = Checkpoint(
                key: id.bytes, path: file.path.text, offset: $0.offset, state: $0.encoded())
            assert(ObjectSplitter.Resumption(made) == $0, "a checkpoint cannot be read back")
            return made
        }
    }

    /// Closes the file until its second try, which continues at the position that was reached.
    ///
    /// - Parameter mark: the end of the file, as the first try found it.
    func startOver(behind mark: Mark) {
        cut = mark
        descriptor = nil
        content.startOver()
    }
}

extension ObjectSplitter.Resumption {
    /// First byte of the state; distinguishes it from a `FileTrace`, which begins with 1.
    private static let version: UInt8 = 2
    /// First byte of a state that includes the time since when the file is missed.
    private static let versionMissed: UInt8 = 3

    /// The state of a checkpoint for a file that was read in part.
    ///
    /// - Parameter missingSince: when the file was found to be gone, in milliseconds after 1970; nil while
    ///   it is there.
    func encoded(missingSince: Int64? = nil) -> [UInt8] {
        guard let missingSince else { return [Self.version, state.rawValue] }
        return [Self.versionMissed, state.rawValue]
            + withUnsafeBytes(of: missingSince.littleEndian) { Array($0) }
    }

    /// The position in a checkpoint; nil if its state does not have a format that this version writes.
    init?(_ checkpoint: Checkpoint) {
        let bytes = checkpoint.state
        guard checkpoint.offset >= 0,
            bytes.count == 2 && bytes[0] == Self.version
                || bytes.count == 10 && bytes[0] == Self.versionMissed,
            let state = State(rawValue: bytes[1])
        else { return nil }
        self.init(offset: checkpoint.offset, state: state)
    }

    /// The time since when the file of a checkpoint is missed; nil if it is not, or if the state has another
    /// format.
    static func missingSince(_ checkpoint: Checkpoint) -> Int64? {
        let bytes = checkpoint.state
        guard Self(checkpoint) != nil, bytes.count == 10 else { return nil }
        return Int64(bitPattern: bytes[2...].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
