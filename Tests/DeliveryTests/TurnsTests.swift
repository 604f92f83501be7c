import EventLoops
import Testing

@testable import Delivery

@Suite("Turns and rates")
struct TurnsTests {
    private let start = BootInstant(nanoseconds: 1)

    @Test("pieces of rejected batches and other batches alternate; a missing one costs no turn")
    func pieces() {
        var turns = Turns(requestsPerSecond: nil, at: start)
        #expect(!turns.prefersPieces && !turns.isLimited && did(turns.allowsRequest(at: start)))
        turns.begun(isPiece: false)
        #expect(turns.prefersPieces)
        turns.begun(isPiece: true)
        #expect(!turns.prefersPieces)
        turns.begun(isPiece: false)
        turns.giveTurnBack()
        #expect(!turns.prefersPieces)
    }

    @Test("a rate is kept, and says when the next request may begin")
    func rate() {
        var turns = Turns(requestsPerSecond: 2, at: start)
        for _ in 0..<2 {
            #expect(did(turns.allowsRequest(at: start)))
            turns.charge(1, at: start)
        }
        #expect(!did(turns.allowsRequest(at: start)))
        let again = turns.rateRetryAt ?? start
        #expect(again > start && again <= start + .milliseconds(501))
        turns.passTime()
        #expect(turns.rateRetryAt == nil && did(turns.allowsRequest(at: again)))
        turns.limit(to: nil, at: again)
        #expect(!turns.isLimited)
    }

    @Test("the backlog is examined once, at the earliest time requested")
    func looks() {
        var turns = Turns(requestsPerSecond: nil, at: start)
        #expect(!turns.looks(at: start + .seconds(99)))
        turns.look(at: start + .seconds(4))
        turns.look(at: start + .seconds(9))
        #expect(!turns.looks(at: start + .seconds(3)) && turns.looks(at: start + .seconds(4)))
        turns.endLook()
        #expect(!turns.looks(at: start + .seconds(99)) && turns.lookAt == nil)
    }
}
