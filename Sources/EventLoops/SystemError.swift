internal import Glibc

/// A system call that failed.
public struct SystemError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The name of the call, as in its manual page.
    public let call: String

    /// The number that the call left in `errno`.
    public let number: Int32

    /// Reads `errno`: to be made right after the call.
    public init(_ call: StaticString) {
        self.call = "\(call)"
        number = errno
    }

    package init(_ call: StaticString, number: Int32) {
        self.call = "\(call)"
        self.number = number
    }

    /// The call and the system's words for the error: `open: No such file or directory`.
    public var description: String {
        "\(call): \(SystemError.message(number))"
    }

    /// The system's words for an error number.
    public static func message(_ number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, strerror_r(number, base, buffer.count) == 0
            else { return "error \(number)" }
            return String(cString: base)
        }
    }
}
