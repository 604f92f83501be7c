internal import EventLoops
internal import Model

/// A drop file that was seen.
struct PendingDrop {
    var directory: SpoolDirectory
    var name: FileName
    /// Whether it is known to be complete, because it was renamed to its name.
    var isComplete: Bool
}

/// A drop file that is being read.
final class DropReading {
    let file: ClaimedFile
    let source: SpoolSource
    let format: DropFormat
    /// Whether it stays under its own name (`after_read = "keep"`).
    let isKept: Bool
    /// What it looked like when it was opened.
    let status: FileStatus
    /// Open while it is read.
    var descriptor: Descriptor?
    /// Where to read next in the file.
    var position: Int64
    /// Cuts a `.json` file into events.
    var splitter: ObjectSplitter
    /// Unpacks a file of lines.
    var packed: PackedLines?
    /// The length so far of a line that is too long and is being skipped, and its beginning.
    var skipped: (length: Int64, offset: Int64, head: [UInt8])?
    /// Whether the splitter holds an event that the sink has not taken.
    var isEventWaiting = false
    /// Whether it waits for the sink's word.
    var isParked = false
    /// Between two events: all before it was taken.
    var taken: ObjectSplitter.Place
    /// The place that the last checkpoint told; nil if there was none.
    var checkpointed: ObjectSplitter.Place?
    /// Whether it ended too early before.
    var isSecondTry = false

    init(
        _ file: ClaimedFile, source: SpoolSource, format: DropFormat, isKept: Bool, status: FileStatus,
        descriptor: consuming Descriptor, longest: Int, from place: ObjectSplitter.Place?
    ) {
        self.file = file
        self.source = source
        self.format = format
        self.isKept = isKept
        self.status = status
        self.descriptor = consume descriptor
        let start = place ?? .start
        splitter = ObjectSplitter(longest: longest, from: start)
        taken = start
        checkpointed = place
        position = start.offset
    }

    var id: FileID { file.id }

    /// Gives back what only reading needs: many files may wait for their second try.
    func letGo() {
        descriptor = nil
        packed = nil
        skipped = nil
        splitter = ObjectSplitter(longest: 0, from: taken)
    }
}

extension ObjectSplitter.Place {
    private static let version: UInt8 = 2

    /// A checkpoint's state for a file that was read in part.
    var encoded: [UInt8] { [Self.version, state.rawValue] }

    /// The place of a checkpoint; nil if its state is not what this version writes.
    init?(_ checkpoint: Checkpoint) {
        guard checkpoint.offset >= 0, checkpoint.state.count == 2, checkpoint.state[0] == Self.version,
            let state = State(rawValue: checkpoint.state[1])
        else { return nil }
        self.init(offset: checkpoint.offset, state: state)
    }
}
