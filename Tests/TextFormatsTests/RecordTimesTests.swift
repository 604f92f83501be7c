import EventLoops
import TestKit
import Testing

@testable import TextFormats
@testable import TimeZones

@Suite("The times of a log")
struct LogTimesTests {
    private func time(_ text: String, in times: inout LogTimes) -> String? {
        Array(text.utf8).withUnsafeBytes { times.time(of: Bytes($0)) }.map { "\($0)" }
    }

    @Test("the same text is the same time, until the zone or the current time changes")
    func memory() throws {
        var times = LogTimes()
        times.now = testNow
        for _ in 0..<2 {
            let found = time("Nov 28 10:00:00", in: &times)
            #expect(found == "2026-11-28T10:00:00.000Z")
        }
        times.now = Timestamp(seconds: 1_795_910_400 - 366 * 86_400, nanoseconds: 0)
        var found = time("Nov 28 10:00:00", in: &times)
        #expect(found == "2025-11-28T10:00:00.000Z")
        times.zone = try #require(TimeZoneRules(rule: "ABC-3"))
        found = time("Nov 28 10:00:00", in: &times)
        #expect(found == "2025-11-28T07:00:00.000Z")
    }

    @Test("a text that is not a time forgets nothing, and one of the same length is not taken for the last")
    func other() {
        var times = LogTimes()
        let texts = [
            "2026-11-29 10:00:00", "2026-11-29 10:00:61", "", "2026-11-29 10:00:01", "no time at all",
        ]
        let found = (texts + texts).map { time($0, in: &times) }
        let wanted = ["2026-11-29T10:00:00.000Z", nil, nil, "2026-11-29T10:00:01.000Z", nil]
        #expect(found == wanted + wanted)
    }
}

@Suite("The member timestamp")
struct TimestampMemberTests {
    /// The member of a time, which is also copied.
    private func text(_ time: Timestamp, _ member: inout TimestampMember) -> String {
        member.set(time)
        var bytes = [UInt8](repeating: 0, count: TimestampMember.most)
        bytes.withUnsafeMutableBufferPointer { member.copy(to: $0.baseAddress.unsafelyUnwrapped) }
        return String(decoding: bytes.prefix(member.count), as: UTF8.self)
    }

    @Test("the fraction has 3, 6 or 9 digits, whichever shows the time without loss")
    func fractions() {
        var member = TimestampMember()
        for (nanoseconds, fraction) in [
            (0, "000"), (120_000_000, "120"), (1_000, "000001"), (999_999_000, "999999"), (1, "000000001"),
            (123_456_789, "123456789"), (5_000_000, "005"),
        ] {
            let time = Timestamp(seconds: 1_795_910_400, nanoseconds: nanoseconds)
            #expect(text(time, &member) == #""timestamp":"2026-11-29T00:00:00.\#(fraction)Z","#)
        }
    }

    @Test("whatever time was written before, the text is that of a new member", arguments: Seeds.list(1...5))
    func memory(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var member = TimestampMember()
        var time = Timestamp(seconds: 0, nanoseconds: 0)
        for _ in 0..<2_000 {
            switch Int.random(in: 0..<4, using: &random) {
            case 0: break
            case 1: time = Timestamp(nanoseconds: Int64.random(in: -(1 << 62)...1 << 62, using: &random))
            default:
                let steps: [Int64] = [1, 1_000, 1_000_000_000, 86_400_000_000_000]
                let step = steps.randomElement(using: &random) ?? 1
                time = Timestamp(nanoseconds: time.nanoseconds.addingSaturating(step))
            }
            var fresh = TimestampMember()
            #expect(text(time, &member) == text(time, &fresh), "\(Seeds.again(seed))")
            #expect(member.count <= TimestampMember.most)
        }
    }
}
