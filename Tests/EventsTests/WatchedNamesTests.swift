import EventLoops
import Model
import TestKit
import Testing

@testable import Events

/// Every app's settings may name members of their own: however many there are, each is found, and no other is.
@Suite("Any number of watched names")
struct WatchedNamesTests {
    private func place(_ name: [UInt8], in known: borrowing KnownNames) -> Int {
        name.withUnsafeBufferPointer { known.slot(of: $0) }
    }

    /// Names of all lengths, many of which share their first and last eight bytes.
    private func names(_ count: Int, _ random: inout SplitMix64) -> [[UInt8]] {
        var names: Set<[UInt8]> = []
        while names.count < count {
            let length = Int.random(in: 1...30, using: &random)
            var name = [UInt8](repeating: UInt8(ascii: "m"), count: length)
            for _ in 0..<3 {
                name[Int.random(in: 0..<length, using: &random)] = UInt8.random(in: 97...122, using: &random)
            }
            names.insert(name)
        }
        return Array(names).sorted { $0.lexicographicallyPrecedes($1) }
    }

    @Test(
        "each of a thousand names has its place, and other names have none",
        arguments: [0, 5, 60, 1_000])
    func findsAll(_ count: Int) {
        var random = SplitMix64(seed: Seeds.one(55))
        let watched = names(count, &random)
        let known = KnownNames(watched)
        let first = MemberName.allCases.count
        for (index, name) in watched.enumerated() { #expect(place(name, in: known) == first + index) }
        let own = Set(watched).union(MemberName.allCases.map(\.spelling))
        for name in names(2_000, &random) where !own.contains(name) { #expect(place(name, in: known) == -1) }
    }

    @Test("members named by the settings of a hundred apps are read as times, beside any other members")
    func readsTimes() {
        var options = EventOptions()
        for index in 0..<100 {
            var app = AppOptions()
            app.timeMembers = ["when_\(index)", "a_long_time_\(index)_of_the_event"]
            app.kind = .log
            options.apps["app\(index)"] = app
        }
        for index in [0, 7, 63, 64, 99] {
            var reading = Reading(options, app: "app\(index)")
            for member in ["when_\(index)", "a_long_time_\(index)_of_the_event", #"wh\u0065n_\#(index)"#] {
                let line = #"{"other":1,"a_long_time_xx_of_the_event":1,"\#(member)":"2026-11-19T10:00:00Z"}"#
                let (verdict, _) = reading.read(line)
                #expect(verdict.eventTime == Timestamp(milliseconds: 1_795_082_400_000), "\(line)")
            }
        }
    }

    @Test("a long name that is spelled with escapes throughout is the same name")
    func longEscapedName() {
        let name = String(repeating: "w", count: 99) + "hen"
        var options = EventOptions()
        options.defaults.timeMembers = [name]
        options.defaults.kind = .log
        var reading = Reading(options)
        let escaped = name.unicodeScalars.map { "\\u00" + String($0.value, radix: 16) }.joined()
        for member in [name, escaped] {
            let (verdict, _) = reading.read(#"{"\#(member)":"2026-11-19T10:00:00Z"}"#)
            #expect(verdict.eventTime == Timestamp(milliseconds: 1_795_082_400_000), "\(member)")
        }
    }
}
