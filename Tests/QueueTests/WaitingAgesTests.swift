import EventLoops
import Model
import Testing

@testable import Queue

/// The ages of a lane's waiting events, without a database.
@Suite struct WaitingAgesTests {
    private let start = Timestamp(nanoseconds: 1_000_000_000_000)

    @Test("The first events set the ages; later ones can only lower the least event time")
    func add() throws {
        let shop = try #require(DeadlineNames(["shop"]))
        var ages = WaitingAges()
        #expect(ages.isStale && ages.oldestAcceptedAt == nil)
        ages.add(start, acceptedAt: start + .seconds(1), deadlines: nil, isOnly: true)
        ages.add(start - .seconds(5), acceptedAt: start + .seconds(2), deadlines: shop, isOnly: false)
        ages.add(start + .seconds(9), acceptedAt: start + .seconds(3), deadlines: shop, isOnly: false)
        #expect(!ages.isStale && ages.oldestAcceptedAt == start + .seconds(1))
        #expect(ages.earliestEventTime == start - .seconds(5))
        #expect(ages.earliestByDeadlines == [shop: start - .seconds(5)])
    }

    @Test("After the last event has left, nothing of its age remains")
    func anew() throws {
        let shop = try #require(DeadlineNames(["shop"]))
        var ages = WaitingAges()
        ages.add(start, acceptedAt: start, deadlines: shop, isOnly: true)
        ages.markStale()
        ages.add(start + .seconds(9), acceptedAt: start + .seconds(9), deadlines: nil, isOnly: true)
        #expect(!ages.isStale && ages.oldestAcceptedAt == start + .seconds(9))
        #expect(ages.earliestEventTime == start + .seconds(9) && ages.earliestByDeadlines == [:])
    }

    @Test("What was read again replaces all ages, and they stay stale until then")
    func set() {
        var ages = WaitingAges()
        ages.add(start, acceptedAt: start, deadlines: nil, isOnly: true)
        ages.markStale()
        #expect(ages.isStale)
        ages.set(oldestAcceptedAt: start + .seconds(1), earliest: start + .seconds(2), byDeadlines: [:])
        #expect(!ages.isStale && ages.oldestAcceptedAt == start + .seconds(1))
        #expect(ages.earliestEventTime == start + .seconds(2))
    }
}
