internal import CCrashDisk
internal import Glibc

/// What a thread of a test may do; the kernel keeps that for each thread.
public enum ThreadRights {
    /// Makes the calling thread one of the user `nobody` as far as files go, without any capability, for good.
    ///
    /// - Returns: whether that worked; it needs root.
    public static func giveUp() -> Bool {
        guard let symbol = dlsym(nil, "setfsuid") else { return false }
        let setFileUser = unsafeBitCast(symbol, to: (@convention(c) (UInt32) -> Int32).self)
        _ = setFileUser(65_534)
        return setFileUser(65_534) == 65_534 && csyscalls_drop_capabilities() == 0
    }
}
