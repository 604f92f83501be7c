import Testing

@testable import Spool

@Suite("The read buffer that readers share")
struct ReadBufferTests {
    /// A reader that counts how often it was told to rest.
    private final class Reader: ReadBuffer.User {
        var isNoted = false
        var wasUsed = false
        private(set) var rests = 0

        func rest() { rests += 1 }
    }

    private let user = Reader()

    @Test("a reader that has nothing to read rests, once, although others read on")
    func rest() {
        let buffer = ReadBuffer()
        let (busy, idle) = (Reader(), Reader())
        for _ in 0..<3 { _ = buffer.take(100, by: idle) }
        for second in 0..<5 {
            _ = buffer.take(100, by: busy)
            #expect(buffer.becomeIdle() == (second == 0))
            _ = buffer.take(100, by: busy)
            #expect(buffer.releaseIfUnused() == .askAgain)
            #expect(busy.rests == 0 && idle.rests == (second == 0 ? 0 : 1))
        }
        // It reads once more, and then nobody does.
        _ = buffer.take(100, by: idle)
        #expect(buffer.releaseIfUnused() == .askAgain)
        #expect(buffer.releaseIfUnused() == .nothing)
        #expect(busy.rests == 1 && idle.rests == 2)
        #expect(!busy.isNoted && !idle.isNoted)
    }

    @Test("a reader that stops is not told to rest")
    func stopped() {
        let buffer = ReadBuffer()
        _ = buffer.take(100, by: user)
        buffer.forget(user)
        buffer.release()
        #expect(buffer.releaseIfUnused() == .nothing)
        #expect(user.rests == 0 && !user.isNoted)
    }

    @Test("is freed once nothing was read for a while, and asked for again before that")
    func release() {
        let buffer = ReadBuffer()
        #expect(!buffer.becomeIdle())
        _ = buffer.take(100, by: user)
        #expect(buffer.becomeIdle())
        // One timer is enough.
        #expect(!buffer.becomeIdle())
        _ = buffer.take(100, by: user)
        #expect(buffer.releaseIfUnused() == .askAgain)
        #expect(buffer.releaseIfUnused() == .nothing)
    }

    @Test("after many uses freed memory is returned to the system, later than the buffer is freed")
    func returned() {
        let buffer = ReadBuffer()
        func burst() {
            for _ in 0..<300 { _ = buffer.take(100, by: user) }
            #expect(buffer.becomeIdle())
        }
        burst()
        #expect(buffer.releaseIfUnused() == .askLater)
        #expect(buffer.releaseIfUnused() == .returnMemory)
        #expect(buffer.releaseIfUnused() == .nothing)
        burst()
        #expect(buffer.releaseIfUnused() == .askLater)
        // Lines came meanwhile: the buffer is freed as soon as otherwise.
        _ = buffer.take(100, by: user)
        #expect(buffer.becomeIdle())
        #expect(buffer.releaseIfUnused() == .askLater)
        #expect(buffer.releaseIfUnused() == .returnMemory)
    }
}
