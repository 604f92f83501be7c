internal import CLinux
internal import Glibc

/// Random numbers of the kernel, read 4 KiB at a time.
///
/// The standard library's generator makes a system call for each number, which would be one for each
/// event. Reading a block takes a sixteenth of the time for the same bytes, and the numbers are as
/// good.
///
/// A class, because two copies of a struct would return the same numbers. Not thread-safe: one for each
/// loop.
public final class KernelRandom: RandomNumberGenerator {
    /// Numbers in a block: 4 KiB.
    private static let size = 512
    /// The numbers of the last read.
    private let block: UnsafeMutablePointer<UInt64>
    /// Numbers of the block that were returned already; the block is refilled when all were.
    private var used = KernelRandom.size

    /// A generator that reads its first block when the first number is needed.
    public init() { block = .allocate(capacity: KernelRandom.size) }

    deinit { block.deallocate() }

    /// The next number.
    public func next() -> UInt64 {
        if used == KernelRandom.size {
            refill()
        }
        defer { used += 1 }
        return block[used]
    }

    private func refill() {
        var filled = 0
        let wanted = KernelRandom.size * MemoryLayout<UInt64>.size
        while filled < wanted {
            let count = getrandom(UnsafeMutableRawPointer(block) + filled, wanted - filled, 0)
            // It fails only with EINTR, when a signal arrives before the kernel's generator is seeded
            // early at boot: getrandom(2).
            guard count >= 0 else {
                precondition(errno == EINTR, "getrandom: \(SystemError.message(errno))")
                continue
            }
            filled += count
        }
        used = 0
    }
}
