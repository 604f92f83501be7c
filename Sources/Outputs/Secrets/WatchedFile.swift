internal import EventLoops
internal import Model

/// A small file whose content is kept, and read again when the file changes.
///
/// It is checked when its owner asks, never by a timer: one `stat` for each check. Symbolic links are
/// followed: the configuration is trusted, and Kubernetes mounts secrets as links. A file system that does
/// not answer delays the caller by a second at most (`SilentFiles`).
struct WatchedFile {
    let path: String
    /// Largest size in bytes; a larger file is refused, because its content is held in memory.
    let limit: Int
    /// Status of the file when it was last read; nil before.
    private var status: FileStatus?
    /// Content at the last successful read; empty before.
    private(set) var content: [UInt8] = []

    init(path: String, limit: Int = 1 << 20) {
        self.path = path
        self.limit = limit
    }

    /// Whether the file differs from what was read, or its file system does not answer, which `read` then
    /// reports. A deleted file counts as unchanged, so that the last content stays in use.
    var hasChanged: Bool {
        guard let answer = SilentFiles.answer(about: path, { [path] in FileStatus(path) }) else {
            return true
        }
        guard let now = answer else { return status == nil }
        return now != status
    }

    /// Reads the file again.
    ///
    /// - Throws: `OutputError` with code `unreadable`, `unanswered` or `badFile`; the previous content
    ///   stays.
    mutating func read() throws(OutputError) {
        let answer = SilentFiles.answer(about: path) { [path, limit] in
            // The status comes before the content: a change between the two is then seen as a change at the
            // next check. The other way round it would never be noticed.
            let now = FileStatus(path)
            guard now?.isRegular ?? true else { return (now, Result<[UInt8]?, SystemError>.success([])) }
            return (now, Result { () throws(SystemError) in try WholeFile.bytes(of: path, atMost: limit) })
        }
        guard let (now, bytes) = answer else {
            throw OutputError(.unanswered, "\(path) cannot be read: its file system does not answer")
        }
        guard now?.isRegular ?? true else { throw OutputError(.badFile, "\(path) is not a regular file") }
        let read = try relaying(try bytes.get()) { (error: SystemError) in
            OutputError(.unreadable, "\(path) cannot be read: \(SystemError.message(error.number))")
        }
        guard let read else {
            throw OutputError(.badFile, "\(path) is larger than \(limit) bytes: is it the right file?")
        }
        content = read
        status = now
    }
}
