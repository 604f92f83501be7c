/// How far a file has been read.
public struct BackfillState: Sendable, Equatable {
    /// Where the last piece ended; nil when none was taken.
    public let place: String?
    /// How many bytes of lines a piece should have at most, a single event excepted.
    public let pieceBytes: Int
    /// The longest event, in bytes.
    public let maxEventSize: Int

    package init(place: String?, pieceBytes: Int, maxEventSize: Int) {
        self.place = place
        self.pieceBytes = pieceBytes
        self.maxEventSize = maxEventSize
    }
}

/// A part of an old file.
public struct BackfillPiece: Sendable, Equatable {
    /// Names the file: letters and digits.
    public var key: String
    /// The file's path, for people.
    public var file: String
    /// Whose events they are.
    public var app: String
    /// The place where it begins; nil for the file's beginning.
    public var from: String?
    /// The place where it ends. Opaque to the agent.
    public var end: String
    /// Where it begins in the file, in bytes.
    public var offset: Int64
    /// Lines, each with its line feed; or what goes to the quarantine as it is.
    public var bytes: [UInt8]
    /// Why the bytes go to the quarantine; nil for lines.
    public var problem: Problem?

    /// Why bytes go to the quarantine as they are.
    public struct Problem: Sendable, Equatable {
        /// The reason, as in `quarantine list`.
        public var reason: String
        /// What exactly, for a person.
        public var detail: String
        /// How long it is in the file, in bytes.
        public var length: Int64

        package init(reason: String, detail: String, length: Int64) {
            self.reason = reason
            self.detail = detail
            self.length = length
        }
    }

    package init(
        key: String, file: String, app: String, from: String?, end: String, offset: Int64, bytes: [UInt8],
        problem: Problem? = nil
    ) {
        self.key = key
        self.file = file
        self.app = app
        self.from = from
        self.end = end
        self.offset = offset
        self.bytes = bytes
        self.problem = problem
    }
}

/// The result of a piece's events: `read` is the sum of the others.
public struct BackfillResult: Sendable, Equatable {
    /// Events read.
    public let read: Int
    /// Events refused by a limit.
    public let refused: Int
    /// Lines that are not events.
    public let quarantined: Int

    package init(read: Int, refused: Int, quarantined: Int) {
        self.read = read
        self.refused = refused
        self.quarantined = quarantined
    }
}
