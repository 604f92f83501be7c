internal import Glibc

/// Finds where lines end.
enum LineEnds {
    /// Offset of the line feed that ends the line from `start` on; the end of the bytes without one.
    @inline(__always)
    static func end(of start: Int, in bytes: UnsafeBufferPointer<UInt8>) -> Int {
        guard let base = bytes.baseAddress, let feed = memchr(base + start, 0x0A, bytes.count - start) else {
            return bytes.count
        }
        return UnsafeRawPointer(feed) - UnsafeRawPointer(base)
    }
}
