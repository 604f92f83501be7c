/// A part of an old file: some complete events, or bytes that cannot be one.
public struct FilePiece: Sendable, Equatable {
    /// Lines, each with its line feed; of a problem its bytes, at most the first 4 KiB of them.
    public var bytes: [UInt8]
    /// Where they begin in the unpacked file; of a JSON text brought to lines, where the first one does.
    public var offset: Int64
    /// Why they go to the quarantine as they are; nil for lines.
    public var problem: Problem?
    /// Where reading resumes after them. Opaque to the agent.
    public var end: String

    /// Why bytes go to the quarantine as they are.
    public struct Problem: Sendable, Equatable {
        package var reason: QuarantineRecord.Reason
        /// What exactly, for a person; never the content.
        public var detail: String
        /// How long it is in the unpacked file, in bytes.
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

/// A piece on its way to the agent.
public struct BackfillPiece: Sendable, Equatable {
    /// Names the file: letters and digits.
    public var key: String
    /// The file's path, for people.
    public var file: String
    package var app: String
    /// The place where it begins; nil for the file's beginning.
    public var from: String?
    package var content: FilePiece

    package init(key: String, file: String, app: String, from: String?, content: FilePiece) {
        (self.key, self.file, self.app, self.from, self.content) = (key, file, app, from, content)
    }
}
