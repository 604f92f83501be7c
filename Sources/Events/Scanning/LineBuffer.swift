internal import Glibc

/// Lines on their way into a chunk: a growing run of bytes whose storage is used again.
///
/// An array would check its bounds and its uniqueness for each piece; this is written to by every event.
public struct LineBuffer: ~Copyable {
    private(set) var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int

    /// How many bytes it holds.
    public private(set) var count = 0

    /// An empty buffer with room for `capacity` bytes at once; it grows by itself.
    public init(capacity: Int = 4096) {
        self.capacity = max(capacity, 64)
        start = .allocate(capacity: self.capacity)
    }

    deinit { start.deallocate() }

    package var isEmpty: Bool { count == 0 }

    /// What it holds; valid until it changes.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// Forgets what it holds. Storage beyond `capacity` is given back, so that one huge event does not keep its memory.
    public mutating func removeAll(keepingCapacity capacity: Int = .max) {
        count = 0
        guard self.capacity > capacity else { return }
        start.deallocate()
        self.capacity = max(capacity, 64)
        start = .allocate(capacity: self.capacity)
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        memcpy(start + count, source, bytes.count)
        count += bytes.count
    }

    package mutating func append(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { append($0) } }

    package mutating func append(_ word: StaticString) {
        append(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Makes room for so many bytes more.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if capacity - count < more { grow(more) }
    }

    /// Where the next byte goes. Whoever writes there has reserved the room, and calls `wrote`.
    @inline(__always) var cursor: UnsafeMutablePointer<UInt8> { start + count }

    /// Counts what was written up to `cursor`.
    @inline(__always)
    mutating func wrote(to cursor: UnsafeMutablePointer<UInt8>) { count = cursor - start }

    @inline(never)
    private mutating func grow(_ more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        memcpy(moved, start, count)
        start.deallocate()
        start = moved
        capacity = larger
    }
}
