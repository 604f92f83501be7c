internal import EventLoops
internal import Glibc

/// A text in a file that only its owner may read.
enum PrivateText {
    /// Writes a text to a new file.
    ///
    /// - Throws: `CommandFailure` with code 73 when there is such a file already, or none can be made.
    static func write(_ text: String, to path: String) throws(CommandFailure) {
        let raw = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard raw >= 0 else {
            throw CommandFailure(.cannotCreate, "cannot make \(path): \(SystemError.message(errno).lowercased())")
        }
        let file = Descriptor(raw)
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(file.raw, $0.baseAddress, $0.count) }
            guard count > 0 || errno == EINTR else {
                throw CommandFailure(.inputOutput, "cannot write \(path): \(SystemError.message(errno).lowercased())")
            }
            rest = rest.dropFirst(max(0, count))
        }
    }
}
