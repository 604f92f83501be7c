/// The one buffer for blocks, shared by all readers of a loop, and freed once nothing was read for a while.
/// Otherwise each app that reads in place would hold a megabyte.
///
/// The content belongs to the reader that took the buffer last, and only for one piece of work.
final class ReadBuffer {
    private var memory: UnsafeMutableRawBufferPointer?
    /// Whether the buffer was taken since `rest`.
    private var isUsed = false
    /// Whether a reader has a timer that will call `releaseIfUnused`.
    private var isReleasePlanned = false

    deinit { memory?.deallocate() }

    /// The buffer, at least `size` bytes; its old content is undefined. A piece of work that takes the buffer
    /// twice with the same size gets the same memory, so it must be done with the first block.
    func take(_ size: Int) -> UnsafeMutableRawBufferPointer {
        isUsed = true
        if let memory, memory.count >= size {
            return UnsafeMutableRawBufferPointer(rebasing: memory[..<size])
        }
        memory?.deallocate()
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
        memory = fresh
        return fresh
    }

    /// Nothing is to be read now. True if the caller is to call `releaseIfUnused` later. The memory is not
    /// freed at once: for lines that come one by one it would be mapped, zeroed and unmapped each time, 5 %
    /// of their cost.
    func rest() -> Bool {
        guard memory != nil, !isReleasePlanned else { return false }
        isUsed = false
        isReleasePlanned = true
        return true
    }

    /// Frees the memory unless it was used since `rest`. True if it was used, and the caller is to call again
    /// later.
    func releaseIfUnused() -> Bool {
        isReleasePlanned = false
        if isUsed { return rest() }
        release()
        return false
    }

    /// Frees the memory. A reader that stops calls this too: the next reader that needs the buffer allocates
    /// it again, and plans its release.
    func release() {
        memory?.deallocate()
        memory = nil
        isUsed = false
        isReleasePlanned = false
    }
}
