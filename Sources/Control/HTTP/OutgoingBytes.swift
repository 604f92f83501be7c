/// Bytes on their way to a client, of which the kernel accepts as many as it has room for.
struct OutgoingBytes {
    /// The bytes; the first `sent` of them are sent.
    private var bytes: [UInt8] = []
    /// Bytes that the kernel has accepted.
    private var sent = 0

    /// Sent bytes that are kept in front of the others at most: to remove them moves the others.
    private static let mostSent = 1_048_576

    /// Bytes that are not sent yet.
    var waiting: Int { bytes.count - sent }

    /// Adds bytes.
    mutating func add(_ more: [UInt8]) { bytes += more }

    /// Calls `body` with the bytes that wait.
    func withWaiting<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes[sent...].withUnsafeBytes(body)
    }

    /// The kernel has accepted bytes.
    mutating func advance(_ count: Int) { sent += count }

    /// Forgets what is sent, when nothing waits or much is kept.
    mutating func trim() {
        guard waiting == 0 || sent > OutgoingBytes.mostSent else { return }
        bytes.removeFirst(sent)
        sent = 0
    }
}
