/// The one buffer for blocks, shared by all readers of a loop, and freed once nothing was read for a while.
/// Otherwise each app that reads in place would hold a megabyte.
///
/// The content belongs to the reader that took the buffer last, and only for one piece of work.
final class ReadBuffer {
    /// A reader that takes the buffer.
    protocol User: AnyObject {
        /// Whether the reader is among the buffer's users; changed by the buffer alone.
        var isNoted: Bool { get set }
        /// Whether the reader took the buffer since the buffer last looked; changed by the buffer alone.
        var wasUsed: Bool { get set }
        /// Called once the reader has not taken the buffer for a second or two.
        func rest()
    }

    /// The readers that took the buffer and were not told to rest since.
    private var users: [any User] = []
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
    func take(_ size: Int, by user: any User) -> UnsafeMutableRawBufferPointer {
        isUsed = true
        uses += 1
        user.wasUsed = true
        if !user.isNoted {
            user.isNoted = true
            users.append(user)
        }
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

    /// Lets the readers rest that have not taken the buffer since this was called last; all of them once the
    /// buffer itself was not used. There is a timer for the buffer anyway, as long as any reader has work.
    private func letRest(all: Bool) {
        var left: [any User] = []
        for user in users {
            if user.wasUsed, !all {
                user.wasUsed = false
                left.append(user)
            } else {
                user.isNoted = false
                user.rest()
            }
        }
        users = left
    }

    /// Removes a reader that stops.
    func forget(_ user: any User) {
        user.isNoted = false
        users.removeAll { $0 === user }
    }

    /// Frees the memory unless it was used since `becomeIdle`.
    func releaseIfUnused() -> ReleaseStep {
        isReleasePlanned = false
        letRest(all: !isUsed)
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
