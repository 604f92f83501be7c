@testable import Events
import EventLoops
import Model
import Testing

@Suite("Times of events")
struct EventTimeTests {
    private func parse(_ text: String) -> Int64? {
        Array(text.utf8).withUnsafeBufferPointer { TimestampText.parse($0)?.nanoseconds }
    }
    private func number(_ text: String) -> Int64? {
        Array(text.utf8).withUnsafeBufferPointer { TimestampText.parseNumber($0)?.nanoseconds }
    }

    @Test("RFC 3339 times are read")
    func rfc3339() {
        let second: Int64 = 1_000_000_000
        for (text, expected) in [
            ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.1Z", 100_000_000), ("1970-01-01t00:00:00z", 0),
            ("1970-01-01 00:00:01+00:00", second), ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T19:00:00-05:00", 0),
            ("1970-01-01T00:00:00.123456789Z", 123_456_789), ("1970-01-01T00:00:00.1234567899Z", 123_456_789),
            ("1972-12-31T23:59:60Z", 94_694_400 * second), ("2000-02-29T00:00:00Z", 951_782_400 * second),
            ("1969-12-31T23:59:59.999Z", -1_000_000),
            ("2026-11-20T10:00:00.123-23:59", 1_795_255_140_123_000_000),
            ("9999-12-31T23:59:59Z", .max), ("0001-01-01T00:00:00Z", .min),
        ] as [(String, Int64)] {
            #expect(parse(text) == expected, "\(text)")
        }
        for text in [
            "", "2026-11-20", "2026-11-20T10:00:00", "2026-11-20T10:00Z", "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-04-31T00:00:00Z", "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z", "2026-01-01T00:60:00Z", "2026-01-01T00:00:61Z", "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00.5", "2026-01-01T00:00:00+0100", "2026-01-01T00:00:00+24:00",
            "2026-01-01T00:00:00+01:60",
            "2026-01-01T00:00:00Zx", "2026-01-01X00:00:00Z", "2026/01/01T00:00:00Z", "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00,5Z", "2026-1-01T00:00:00.0Z", "２026-01-01T00:00:00Z",
        ] {
            #expect(parse(text) == nil, "\(text)")
        }
    }

    @Test("each day from 1600 to 2400 is written and read back, and follows the previous one")
    func calendar() {
        var expected = Int64(LocalDate(year: 1600, month: 1, day: 1).dayNumber)
        for year in 1600...2400 {
            for month in 1...12 {
                let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
                let length = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
                for day in 1...length {
                    let days = Int64(LocalDate(year: year, month: month, day: day).dayNumber)
                    guard days == expected, LocalDate(dayNumber: Int(days)).parts == (year, month, day) else {
                        Issue.record("\(year)-\(month)-\(day): \(days)")
                        return
                    }
                    expected += 1
                }
            }
        }
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_795_168_800_123, "2026-11-20T10:00:00.123Z"),
            (-86_400_000, "1969-12-31T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        ] as [(Int64, String)] {
            #expect(Timestamp(milliseconds: milliseconds).description == text)
            #expect(parse(text) == milliseconds * 1_000_000)
        }
        for (nanoseconds, text) in [
            (.min, "1677-09-21T00:12:43.145Z"), (.max, "2262-04-11T23:47:16.854Z"),
        ] as [(Int64, String)] {
            #expect(Timestamp(nanoseconds: nanoseconds).description == text)
        }
    }

    @Test("numbers are seconds, milliseconds, microseconds or nanoseconds, by their size")
    func numbers() {
        let expected: Int64 = 1_795_168_800_000_000_000
        for text in [
            "1795168800", "1795168800000", "1795168800000000", "1795168800000000000", "1795168800.0",
        ] {
            #expect(number(text) == expected, "\(text)")
        }
        // They wrap around to times that could be right.
        #expect(number("18446744075504720316") == nil && number("9223372036854775808") == nil)
        #expect(number("1795168800.5") == expected + 500_000_000)
        #expect(number("1795168800123.5") == expected + 123_500_000)
        #expect(number("0") == 0)
        #expect(number("99999999999") == .max)
        for text in ["-1", "1e9", "", "1.5e3", "99999999999999999999", "true"] {
            #expect(number(text) == nil, "\(text)")
        }
    }

    @Test("ac12: exactly 25 days old is kept, older expires; three days ahead is kept, more is quarantined")
    func ac12_boundaries() {
        var reading = Reading()
        for (time, kind) in [
            (#""2026-10-26T10:00:00Z""#, .accepted), (#""2026-10-26T09:59:59.999999999Z""#, .expired),
            (#""2026-11-23T10:00:00Z""#, .accepted), (#""2026-11-23T10:00:00.000000001Z""#, .quarantined),
            ("1792663200", .expired), (#""9999-01-01T00:00:00Z""#, .quarantined),
            (#""0000-01-01T00:00:00Z""#, .expired),
            (#""yesterday""#, .accepted), ("null", .accepted), ("[]", .accepted),
        ] as [(String, Verdict.Kind)] {
            #expect(reading.read(#"{"name":"a","timestamp":\#(time)}"#).verdict.kind == kind, "\(time)")
        }
        #expect(reading.pass.counts[.unreadableTime] == 2)
        #expect(reading.read(#"{"name":"a"}"#).verdict.eventTime == Reading.now)
        _ = reading.read(#"{"name":"a","timestamp":"2026-12-20T10:00:00Z"}"#)
        #expect(reading.pass.problem?.reason == .timeAhead)
    }

    @Test("while the clock is not synchronised nothing expires or lies ahead; a backfill never expires")
    func fault21_clockNotSynchronised() {
        var reading = Reading()
        var backfill = Reading(isBackfill: true)
        for time in ["1971-01-01T00:00:00Z", "2026-12-20T10:00:00Z", "9999-01-01T00:00:00Z"] {
            let line = #"{"name":"a","timestamp":"\#(time)"}"#
            #expect(reading.read(line, isSynchronised: false).verdict.kind == .accepted)
        }
        #expect(backfill.read(#"{"name":"a","timestamp":"1999-01-01T00:00:00Z"}"#).verdict.kind == .accepted)
        #expect(
            backfill.read(#"{"name":"a","timestamp":"2099-01-01T00:00:00Z"}"#).verdict.kind == .quarantined)
    }
}
