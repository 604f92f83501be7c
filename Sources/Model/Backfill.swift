/// A part of an old file that is read once: complete events, or bytes that cannot be an event.
public struct FilePiece: Sendable, Equatable {
    /// Lines, each with its line feed; for a problem its bytes, at most the first 4 KiB.
    public var bytes: [UInt8]
    /// Offset of the bytes in the unpacked file. For a JSON text that was split into lines, that of the
    /// first one.
    public var offset: Int64
    /// Why the bytes go to the quarantine unchanged; nil for lines.
    public var problem: Problem?
    /// Where reading resumes behind these bytes. Opaque to the agent.
    public var end: String

    /// Why bytes go to the quarantine unchanged.
    public struct Problem: Sendable, Equatable {
        package var reason: QuarantineRecord.Reason
        /// The exact problem, for a person; never the content.
        public var detail: String
        /// Length in the unpacked file, in bytes; may be more than `bytes`.
        public var length: Int64

        package init(reason: QuarantineRecord.Reason, detail: String, length: Int64) {
            self.reason = reason
            self.detail = detail
            self.length = length
        }
    }

    package init(bytes: [UInt8], offset: Int64, problem: Problem? = nil, end: String) {
        self.bytes = bytes
        self.offset = offset
        self.problem = problem
        self.end = end
    }
}

/// A piece of an old file, as the command sends it to the agent.
public struct BackfillPiece: Sendable, Equatable {
    /// Identifies the file: letters and digits. Progress is stored under it.
    public var key: String
    /// The file's path, for people.
    public var file: String
    package var app: String
    /// Position where the piece begins, `end` of the piece before it; nil at the beginning of the file. The
    /// agent refuses a piece that does not begin at its own position: otherwise a file that is sent twice
    /// would be stored twice.
    public var from: String?
    package var content: FilePiece

    package init(key: String, file: String, app: String, from: String?, content: FilePiece) {
        self.key = key
        self.file = file
        self.app = app
        self.from = from
        self.content = content
    }
}
