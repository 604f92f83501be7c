internal import CLinux
internal import Glibc

/// Random numbers of the kernel, read up to 4 KiB at a time.
///
/// The standard library's generator makes a system call for each number, which would be one for each
/// event. Reading a block takes a sixteenth of the time for the same bytes, and the numbers are as
/// good.
///
/// A class, because two copies of a struct would return the same numbers. Not thread-safe: one for each
/// loop.
public final class KernelRandom: RandomNumberGenerator {
    /// Most numbers in a block: 4 KiB. A generator begins with 128 bytes and quadruples them at each read:
    /// there is one for each of hundreds of apps, and most need few numbers.
    private static let most = 512
    /// Numbers in a block.
    private var size = 16
    /// The numbers of the last read.
    private var block: UnsafeMutablePointer<UInt64>
    /// Numbers of the block that were returned already; the block is refilled when all were.
    private var used = 16
    /// Whether the block was never filled.
    private var isNew = true

    /// A generator that reads its first block when the first number is needed.
    public init() { block = .allocate(capacity: size) }

    deinit { block.deallocate() }

    /// The next number.
    public func next() -> UInt64 {
        if used == size {
            refill()
        }
        defer { used += 1 }
        return block[used]
    }

    private func refill() {
        if !isNew, size < KernelRandom.most {
            block.deallocate()
            // bounded: below `most`.
            size = min(size * 4, KernelRandom.most)
            block = .allocate(capacity: size)
        }
        isNew = false
        var filled = 0
        let wanted = size * MemoryLayout<UInt64>.size
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
