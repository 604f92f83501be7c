internal import EventLoops
internal import Model

struct PendingDrop {
    var directory: SpoolDirectory
    var name: FileName
    /// Whether it is known to be complete, because it was renamed to its name.
    var isComplete: Bool
    /// Whose it is in the drop box, where that tells the app.
    var owner: UInt32?
}

final class DropReading {
    let file: ClaimedFile
    let source: SpoolSource
    /// Whose share of the reader's time reading it uses.
    let share: String
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
    var packed: PackedLines?
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
        _ file: ClaimedFile, source: SpoolSource, share: String, format: DropFormat, isKept: Bool,
        status: FileStatus, descriptor: consuming Descriptor, longest: Int, from place: ObjectSplitter.Place?
    ) {
        (self.file, self.source, self.share) = (file, source, share)
        (self.format, self.isKept, self.status) = (format, isKept, status)
        self.descriptor = consume descriptor
        let start = place ?? .start
        splitter = ObjectSplitter(longest: longest, from: start)
        taken = start
        checkpointed = place
        position = start.offset
    }

    var id: FileID { file.id }

    /// Gives back what only reading needs, and goes on for a last time after what was taken.
    func startOver() {
        descriptor = nil
        packed = nil
        splitter = ObjectSplitter(longest: splitter.longest, from: taken)
        position = taken.offset
        isSecondTry = true
    }
}

extension ObjectSplitter.Place {
    // The first byte tells it from the state of other files, a `FileTrace`.
    private static let version: UInt8 = 2
    /// With the time since when the file is missed.
    private static let versionMissed: UInt8 = 3

    /// A checkpoint's state for a file that was read in part, and maybe is gone: since so many milliseconds after 1970.
    func encoded(missingSince: Int64? = nil) -> [UInt8] {
        guard let missingSince else { return [Self.version, state.rawValue] }
        return [Self.versionMissed, state.rawValue] + withUnsafeBytes(of: missingSince.littleEndian) { Array($0) }
    }

    /// The place of a checkpoint; nil if its state is not what this version writes.
    init?(_ checkpoint: Checkpoint) {
        let bytes = checkpoint.state
        guard checkpoint.offset >= 0,
            bytes.count == 2 && bytes[0] == Self.version || bytes.count == 10 && bytes[0] == Self.versionMissed,
            let state = State(rawValue: bytes[1])
        else { return nil }
        self.init(offset: checkpoint.offset, state: state)
    }

    /// Since when the file of a checkpoint is missed; nil while it is there, or if the state is another one.
    static func missingSince(_ checkpoint: Checkpoint) -> Int64? {
        let bytes = checkpoint.state
        guard Self(checkpoint) != nil, bytes.count == 10 else { return nil }
        return Int64(bitPattern: bytes[2...].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
