import Testing

@testable import Spool

@Suite("The read buffer that readers share")
struct ReadBufferTests {
    @Test("is freed once nothing was read for a while, and asked for again before that")
    func release() {
        let buffer = ReadBuffer()
        #expect(!buffer.becomeIdle())
        _ = buffer.take(100)
        #expect(buffer.becomeIdle())
        // One timer is enough.
        #expect(!buffer.becomeIdle())
        _ = buffer.take(100)
        #expect(buffer.releaseIfUnused() == .askAgain)
        #expect(buffer.releaseIfUnused() == .nothing)
    }

    @Test("after many uses freed memory is returned to the system, later than the buffer is freed")
    func returned() {
        let buffer = ReadBuffer()
        func burst() {
            for _ in 0..<300 { _ = buffer.take(100) }
            #expect(buffer.becomeIdle())
        }
        burst()
        #expect(buffer.releaseIfUnused() == .askLater)
        #expect(buffer.releaseIfUnused() == .returnMemory)
        #expect(buffer.releaseIfUnused() == .nothing)
        burst()
        #expect(buffer.releaseIfUnused() == .askLater)
        // Lines came meanwhile: the buffer is freed as soon as otherwise.
        _ = buffer.take(100)
        #expect(buffer.becomeIdle())
        #expect(buffer.releaseIfUnused() == .askLater)
        #expect(buffer.releaseIfUnused() == .returnMemory)
    }
}
