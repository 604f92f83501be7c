internal import CCrashDisk

/// Fails one call on files of the calling thread, which others do not notice.
public enum FaultSpool {
    /// Counts the calling thread's calls on files from now on; the one with the number `at` (from 1) fails with `error`.
    ///
    /// - Parameters:
    ///   - call: only calls of this name are counted: `unlinkat`; nil: all.
    ///   - lasting: all calls after it fail too, as on a disk that is read-only now.
    public static func arm(_ call: String? = nil, at: Int, error: Int32, lasting: Bool = false) {
        faultspool_arm(call, UInt64(at), error, lasting ? 1 : 0)
    }

    /// Ends it on the calling thread; gives how many calls there were, and which one failed first.
    public static func disarm() -> (calls: Int, failed: String?) {
        let calls = Int(faultspool_disarm())
        return (calls, faultspool_failed().map { String(cString: $0) })
    }
}
