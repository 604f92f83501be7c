import Model
import Testing

@Suite("Sharing a bounded table")
struct HoldingsTests {
    @Test("one app may use all of it; then the largest one gives way until both have as many")
    func givingUp() {
        var holdings = Holdings()
        for _ in 0..<10 { #expect(holdings.reserve(for: "a", of: 10) == .free) }
        #expect(holdings.reserve(for: "a", of: 10) == .none)
        for _ in 0..<5 { #expect(holdings.reserve(for: "b", of: 10) == .givenUp(by: "a")) }
        #expect(holdings.reserve(for: "b", of: 10) == .none)
        #expect(holdings.reserve(for: "c", of: 10) != .none)
        #expect(holdings.count(of: "c") == 1 && holdings.count(of: "a") + holdings.count(of: "b") == 9)
        // As many holders as there are places: nobody has more than the next would.
        var crowded = Holdings()
        for number in 0..<10 { #expect(crowded.reserve(for: "\(number)", of: 10) == .free) }
        #expect(crowded.reserve(for: "another", of: 10) == .none)
    }

    @Test("if no app gives way, each may use half of what is left, so that some is always left")
    func halves() {
        var holdings = Holdings()
        func taken(_ app: String) -> Int {
            var count = 0
            while holdings.takeFair(for: app, of: 128) { count += 1 }
            return count
        }
        #expect(["a", "b", "c", "d", "e", "f", "g"].map { taken($0) } == [64, 32, 16, 8, 4, 2, 1])
        holdings.release("a")
        #expect(taken("h") == 1 && taken("a") == 0)
        holdings.release("nobody")
        #expect(holdings.count(of: "b") == 32)
    }

    @Test("owner ids from 65,536 on are one owner for each 65,536; names and other ids are their own")
    func holders() {
        #expect(
            ["shop", "uid-65535", "uid-x", "uid-65536", "uid-131071", "uid-131072"].map {
                Holdings.holder(of: $0)
            }
                == ["shop", "uid-65535", "uid-x", "uids-1", "uids-1", "uids-2"])
    }
}
