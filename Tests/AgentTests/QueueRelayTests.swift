import Queue
import Synchronization
import Testing

@testable import Agent

@Suite("Passing on changes of the queue")
struct QueueRelayTests {
    @Test("the call depth and the time of a notification do not grow with the number of changes")
    func depth() {
        let relay = QueueRelay()
        let told = Atomic<Int>(0)
        let lowest = Atomic<UInt>(.max)
        let highest = Atomic<UInt>(0)
        relay.connect { _ in
            told.add(1, ordering: .relaxed)
            var here = 0
            // Where the stack is: the same place each time, however often it was called before.
            let place = withUnsafeMutablePointer(to: &here) { UInt(bitPattern: $0) }
            lowest.store(min(place, lowest.load(ordering: .relaxed)), ordering: .relaxed)
            highest.store(max(place, highest.load(ordering: .relaxed)), ordering: .relaxed)
        }
        for _ in 0..<1000 { relay.changed(QueueSnapshot()) }
        #expect(told.load(ordering: .relaxed) == 1000)
        #expect(highest.load(ordering: .relaxed) - lowest.load(ordering: .relaxed) == 0)
    }
}
