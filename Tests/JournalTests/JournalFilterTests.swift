import Model
import Testing

@testable import Journal

@Suite("Journal filter")
struct JournalFilterTests {
    private func options(_ units: [String], priority: Int = 7) -> JournalOptions {
        JournalOptions(
            directory: nil, units: units, priority: priority, since: .beginning, fields: [],
            maxEventSize: 65_536)
    }

    /// Whether an entry passes; twice, because the second time its texts are known.
    private func passes(_ options: JournalOptions, _ fields: [String: String]) -> Bool {
        var entry = JournalEntry(options)
        let texts = fields.map { Array("\($0)=\($1)".utf8) }
        let both = (0..<2).map { _ in
            entry.begin()
            for text in texts { text.withUnsafeBufferPointer { entry.addField($0) } }
            return entry.passes
        }
        #expect(both[0] == both[1])
        return both[0]
    }

    @Test(
        "patterns",
        arguments: [
            ("nginx.service", "nginx.service", true), ("app-1.service", "app-*", true),
            ("app", "app-*", false),
            ("a.b.c", "a*c", true), ("a.b.cd", "a*c", false), ("aXb", "a?b", true), ("ab", "a?b", false),
            ("", "*", true),
            ("abcabc", "*abc", true), ("abcab", "*abc", false), ("x", "", false), ("", "", true),
        ])
    func patterns(name: String, pattern: String, fits: Bool) {
        #expect(Array(name.utf8).fits(Array(pattern.utf8), hasMarks: true) == fits)
    }

    @Test("a pattern with many stars takes at most quadratic time for a name that does not match")
    func manyStars() {
        let name = [UInt8](repeating: UInt8(ascii: "a"), count: 4000)
        let pattern = Array(String(repeating: "*a", count: 1000).utf8) + [UInt8(ascii: "b")]
        #expect(!name.fits(pattern, hasMarks: true))
    }

    @Test("a unit selects what it wrote, and what root or journald wrote about it")
    func units() {
        let units = options(["nginx", "app-*"])
        #expect(passes(units, ["_SYSTEMD_UNIT": "nginx.service"]))
        #expect(passes(units, ["_SYSTEMD_UNIT": "app-7.service"]))
        #expect(passes(units, ["UNIT": "nginx.service", "_PID": "1"]))
        #expect(!passes(units, ["UNIT": "nginx.service", "_PID": "17"]))
        #expect(passes(units, ["COREDUMP_UNIT": "nginx.service", "_UID": "0"]))
        #expect(!passes(units, ["COREDUMP_UNIT": "nginx.service", "_UID": "1000"]))
        #expect(passes(units, ["OBJECT_SYSTEMD_UNIT": "app-x.service", "_UID": "0"]))
        #expect(!passes(units, ["_SYSTEMD_UNIT": "sshd.service"]))
        #expect(!passes(units, [:]))
        #expect(JournalFilter(units).matches.isEmpty, "the index knows no wildcards")
        #expect(JournalFilter(options(["nginx"])).matches.count == 4)
    }

    @Test("a priority selects itself and worse ones; an entry without one counts as info")
    func priorities() {
        let warnings = options([], priority: 4)
        for priority in 0...7 { #expect(passes(warnings, ["PRIORITY": "\(priority)"]) == (priority <= 4)) }
        #expect(!passes(warnings, [:]))
        #expect(passes(options([], priority: 6), [:]))
        #expect(passes(options([], priority: 6), ["PRIORITY": "x"]))
    }
}
