internal import EventLoops
internal import Model

/// A small file that is read again when it changes.
///
/// It looks when it is asked, never by a timer: one `stat` a look. Links are followed, since the configuration is trusted
/// and secrets are often mounted as links. A file system that does not answer holds up nothing.
struct WatchedFile {
    let path: String
    /// The most bytes that it may have: what it is read into is memory.
    let limit: Int
    private var status: FileStatus?
    /// Its bytes at the last successful reading; empty before.
    private(set) var content: [UInt8] = []

    init(path: String, limit: Int = 1 << 20) {
        self.path = path
        self.limit = limit
    }

    /// Whether the file is another one than was read, or does not answer; one that is gone counts as unchanged.
    var hasChanged: Bool {
        guard let answer = SilentFiles.answer(about: path, { [path] in FileStatus(path) }) else { return true }
        guard let now = answer else { return status == nil }
        return now != status
    }

    /// Reads the file. Throws with code `unreadable`, `unanswered` or `badFile`; what was read before stays.
    mutating func read() throws(OutputError) {
        let answer = SilentFiles.answer(about: path) { [path, limit] in
            // Looked at before its bytes are read: a change since then is seen at the next look.
            let now = FileStatus(path)
            guard now?.isRegular ?? true else { return (now, Result<[UInt8]?, SystemError>.success([])) }
            return (now, Result { () throws(SystemError) in try WholeFile.bytes(of: path, atMost: limit) })
        }
        guard let (now, bytes) = answer else {
            throw OutputError(.unanswered, "\(path) cannot be read: its file system does not answer")
        }
        guard now?.isRegular ?? true else { throw OutputError(.badFile, "\(path) is not a regular file") }
        let read = try relaying(try bytes.get()) { (error: SystemError) in
            OutputError(.unreadable, "cannot read \(path): \(SystemError.message(error.number))")
        }
        guard let read else {
            throw OutputError(.badFile, "\(path) is larger than \(limit) bytes: is it the right file?")
        }
        content = read
        status = now
    }
}
