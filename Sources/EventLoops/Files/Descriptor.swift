internal import Glibc

/// A file descriptor that is closed when its owner is destroyed.
///
/// It cannot be copied, so it is closed exactly once; passing it on passes on the duty to close it.
public struct Descriptor: ~Copyable, Sendable {
    /// The number for system calls. Valid only while this value exists.
    public let raw: Int32

    /// Takes ownership of an open descriptor, which no one else may close.
    public init(_ raw: Int32) {
        precondition(raw >= 0, "not a descriptor")
        self.raw = raw
    }

    /// Takes ownership of a system call's result.
    ///
    /// - Parameter result: the result; negative if the call failed and set `errno`.
    /// - Throws: `SystemError` with the call's `errno`.
    public init(checking result: Int32, _ call: StaticString) throws(SystemError) {
        guard result >= 0 else { throw SystemError(call) }
        raw = result
    }

    /// Gives up ownership: returns the number without closing it.
    public consuming func release() -> Int32 {
        let number = raw
        discard self
        return number
    }

    deinit {
        // Linux releases the number even if close(2) fails, so a retry could close another thread's
        // descriptor. Writers that need durability have called fsync before.
        _ = close(raw)
    }
}
