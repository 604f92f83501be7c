/// The one buffer for blocks, shared by all readers of a loop, and freed once nothing was read for a while.
/// Otherwise each app that reads in place would hold a megabyte.
///
/// The content belongs to the reader that took the buffer last, and only for one piece of work.
final class ReadBuffer {
    private var memory: UnsafeMutableRawBufferPointer?
    /// Whether the buffer was taken since `becomeIdle`.
    private var isUsed = false
    /// Whether a reader has a timer that will call `releaseIfUnused`.
    private var isReleasePlanned = false
    /// Count of uses since freed memory was last returned to the system.
    private var uses = 0

    /// Uses after which freed memory is returned: a burst of lines for many apps leaves megabytes in malloc's
    /// arenas, of lines, records and batches (150 apps: 26 MB, of which 21 were in use).
    private static let mostUses = 256

    /// The caller's next action once nothing was read for a while.
    enum ReleaseStep: Equatable {
        /// The buffer was used: ask again after a second.
        case askAgain
        /// The buffer was freed: ask again after half a minute, when what was read has been sent.
        case askLater
        /// Return freed memory to the system (malloc_trim).
        case returnMemory
        case nothing
    }

    deinit { memory?.deallocate() }

    /// The buffer, at least `size` bytes; its old content is undefined. A piece of work that takes the buffer
    /// twice with the same size gets the same memory, so it must be done with the first block.
    func take(_ size: Int) -> UnsafeMutableRawBufferPointer {
        isUsed = true
        uses += 1
        if let memory, memory.count >= size {
            return UnsafeMutableRawBufferPointer(rebasing: memory[..<size])
        }
        memory?.deallocate()
        let fresh = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
        memory = fresh
        return fresh
    }

    /// Notes that there is nothing to read. Returns true if the caller must call `releaseIfUnused` later. The
    /// memory is not freed at once: for lines that come one by one it would be mapped, zeroed and unmapped
    /// each time, 5 % of their cost.
    func becomeIdle() -> Bool {
        guard memory != nil, !isReleasePlanned else { return false }
        isUsed = false
        isReleasePlanned = true
        return true
    }

    /// Frees the memory unless it was used since `becomeIdle`.
    func releaseIfUnused() -> ReleaseStep {
        isReleasePlanned = false
        if isUsed { return becomeIdle() ? .askAgain : .nothing }
        let wasHeld = memory != nil
        release()
        guard uses >= ReadBuffer.mostUses else { return .nothing }
        if wasHeld { return .askLater }
        uses = 0
        return .returnMemory
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
