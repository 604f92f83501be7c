internal import Glibc

/// A system call that failed.
public struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Name of the call, as in its manual page.
    public let call: String

    /// Value of `errno` after the call.
    public let number: Int32

    /// Reads `errno`, so it must be created directly after the call.
    public init(_ call: StaticString) {
        self.call = "\(call)"
        number = errno
    }

    /// An error with a number that is already known.
    package init(_ call: StaticString, number: Int32) {
        self.call = "\(call)"
        self.number = number
    }

    /// The call and the system's message: `open: No such file or directory`.
    public var description: String {
        switch (call, number) {
        // The system's messages, about files and a device, send the reader to the wrong limits.
        case ("inotify_init1", EMFILE):
            "\(call): no inotify instance is left (raise fs.inotify.max_user_instances,"
                + " or LimitNOFILE= of the unit)"
        case ("inotify_add_watch", ENOSPC):
            "\(call): no inotify watch is left (raise fs.inotify.max_user_watches)"
        default: "\(call): \(SystemError.message(number))"
        }
    }

    /// The system's message for an error number, and the limit to raise if it is about one: every message
    /// about a failed call names it, wherever the call is made.
    public static func message(_ number: Int32) -> String { systemMessage(number) + remedy(number) }

    /// The same in lower case, as part of a sentence; names of settings stay as they are written.
    package static func clause(_ number: Int32) -> String {
        systemMessage(number).lowercased() + remedy(number)
    }

    /// The limit to raise, in brackets; empty for errors that are not about a limit of files.
    private static func remedy(_ number: Int32) -> String {
        switch number {
        case EMFILE: " (raise LimitNOFILE= of the unit, or ulimit -n)"
        case ENFILE: " (raise fs.file-max of this machine)"
        default: ""
        }
    }

    /// The system's text. `strerror_r` is thread-safe, unlike `strerror`.
    private static func systemMessage(_ number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, strerror_r(number, base, buffer.count) == 0
            else { return "error \(number)" }
            return String(cString: base)
        }
    }
}
