internal import CLinux
internal import Glibc

/// The kernel's random numbers, read 4 KiB at a time.
///
/// The standard library's generator asks the kernel for each number: a system call an event. A block costs the same
/// bytes at a sixteenth of the time. Numbers are as good as the kernel's. A class, because a copy would repeat them; not
/// thread-safe: one for each loop.
public final class KernelRandom: RandomNumberGenerator {
    private static let size = 512
    private let block: UnsafeMutablePointer<UInt64>
    private var used = KernelRandom.size

    /// A generator that has taken nothing yet.
    public init() { block = .allocate(capacity: KernelRandom.size) }

    deinit { block.deallocate() }

    /// The next number.
    public func next() -> UInt64 {
        if used == KernelRandom.size { refill() }
        defer { used += 1 }
        return block[used]
    }

    private func refill() {
        var filled = 0
        let wanted = KernelRandom.size * MemoryLayout<UInt64>.size
        while filled < wanted {
            let count = getrandom(UnsafeMutableRawPointer(block) + filled, wanted - filled, 0)
            // It fails only when a signal comes before the kernel's generator is seeded, early at boot.
            guard count >= 0 else {
                precondition(errno == EINTR, "getrandom: \(SystemError.message(errno))")
                continue
            }
            filled += count
        }
        used = 0
    }
}
