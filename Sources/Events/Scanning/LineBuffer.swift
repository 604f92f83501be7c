internal import Glibc

/// Lines on their way into a chunk: a growing run of bytes whose memory is used again.
///
/// An array would check bounds and unique ownership for each piece, and every event is written here.
public struct LineBuffer: ~Copyable {
    /// First byte; moves when the buffer grows.
    private(set) var start: UnsafeMutablePointer<UInt8>
    private var capacity: Int

    /// Number of bytes in the buffer.
    public private(set) var count = 0

    /// An empty buffer. It grows as needed; `capacity` bytes fit without growing.
    public init(capacity: Int = 4096) {
        self.capacity = max(capacity, 64)
        start = LineBuffer.memory(self.capacity)
    }

    deinit { free(start) }

    /// Memory from `malloc`, because `realloc` lets a large buffer grow without a copy.
    ///
    /// Linux grants it: it overcommits, and when memory runs out it kills a process instead of refusing. Only
    /// a limit of address space (RLIMIT_AS, vm.overcommit_memory = 2) can make it fail. There Swift's own
    /// allocations end the process, too, and nothing is lost: what was not committed is read again.
    private static func memory(
        _ capacity: Int, insteadOf old: UnsafeMutablePointer<UInt8>? = nil
    ) -> UnsafeMutablePointer<UInt8> {
        guard let memory = realloc(old, capacity) else {
            fatalError("no memory for a line")
        }
        return memory.bindMemory(to: UInt8.self, capacity: capacity)
    }

    package var isEmpty: Bool { count == 0 }

    /// The bytes in the buffer; valid until it changes.
    public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    /// Empties the buffer. Memory beyond `capacity` bytes is freed, so that one huge event does not keep its
    /// memory.
    public mutating func removeAll(keepingCapacity capacity: Int = .max) {
        count = 0
        guard self.capacity > capacity else { return }
        free(start)
        self.capacity = max(capacity, 64)
        start = LineBuffer.memory(self.capacity)
    }

    /// Removes the last byte, if there is one.
    mutating func removeLast() { count -= min(count, 1) }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let source = bytes.baseAddress else { return }
        reserve(bytes.count)
        memcpy(start + count, source, bytes.count)
        count += bytes.count
    }

    package mutating func append(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { append($0) } }

    package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    package mutating func append(_ byte: UInt8) {
        reserve(1)
        start[count] = byte
        count += 1
    }

    package mutating func append(_ word: StaticString) {
        append(UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
    }

    /// Makes room for `more` bytes after those in the buffer.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if capacity - count < more {
            grow(more)
        }
    }

    /// Address of the next byte. A caller that writes here must have reserved the room, and calls `wrote`
    /// afterwards.
    @inline(__always) var cursor: UnsafeMutablePointer<UInt8> { start + count }

    /// Counts the bytes that were written up to `cursor`.
    @inline(__always)
    mutating func wrote(to cursor: UnsafeMutablePointer<UInt8>) { count = cursor - start }

    /// At least doubles the memory, so that appending costs constant time on average. A buffer that begins
    /// small, because an idle app needs none, has room for an event at its first growth.
    @inline(never)
    private mutating func grow(_ more: Int) {
        capacity = max(capacity * 2, count + more, 1024)
        start = LineBuffer.memory(capacity, insteadOf: start)
    }
}
