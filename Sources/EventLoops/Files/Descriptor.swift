internal import Glibc

/// A file descriptor that closes itself when its owner goes.
///
/// It cannot be copied, so it is closed once; passing it on passes on the duty to close it.
public struct Descriptor: ~Copyable, Sendable {
    /// The number that system calls take. It is valid for as long as this value lives.
    public let raw: Int32

    /// Takes ownership of an open descriptor that nobody else closes.
    public init(_ raw: Int32) {
        precondition(raw >= 0, "not a descriptor")
        self.raw = raw
    }

    /// Takes ownership of what a system call returned, or tells its error.
    ///
    /// - Parameter result: what the call returned; negative means that it failed and set `errno`.
    /// - Throws: `SystemError` with the call's `errno`.
    public init(checking result: Int32, _ call: StaticString) throws(SystemError) {
        guard result >= 0 else { throw SystemError(call) }
        raw = result
    }

    /// Gives the number away without closing it.
    public consuming func release() -> Int32 {
        let number = raw
        discard self
        return number
    }

    deinit {
        // Linux frees the number whatever close returns; who needs writes durable has synced them before.
        _ = close(raw)
    }
}
