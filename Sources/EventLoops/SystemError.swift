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
        "\(call): \(SystemError.message(number))"
    }

    /// The system's message for an error number. `strerror_r` is thread-safe, unlike `strerror`.
    public static func message(_ number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, strerror_r(number, base, buffer.count) == 0
            else { return "error \(number)" }
            return String(cString: base)
        }
    }
}
