internal import EventLoops
internal import Glibc
internal import Model

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
        try relaying(try WholeFile.write(Array(text.utf8), to: file.raw)) { (error: SystemError) in
            CommandFailure(.inputOutput, "cannot write \(path): \(SystemError.message(error.number).lowercased())")
        }
    }
}
