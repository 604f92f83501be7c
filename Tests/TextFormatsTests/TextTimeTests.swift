import EventLoops
import TestKit
import Testing

@testable import TextFormats
@testable import TimeZones

@Suite("Times of text logs")
struct TextTimeTests {
    @Test(
        "each form of time is read",
        arguments: [
            ("2026-11-29 10:00:00.123 Z", "2026-11-29T10:00:00.123Z"),
            ("20261129T100000Z", "2026-11-29T10:00:00.000Z"),
            ("Sun, 29 Nov 2026 10:00:00 GMT", "2026-11-29T10:00:00.000Z"),
            ("Sun Nov 29 10:00:00 2026", "2026-11-29T10:00:00.000Z"),
            ("Sun Nov 29 10:00:00 UTC 2026", "2026-11-29T10:00:00.000Z"),
            ("29/Nov/2026:10:00:00 +0130", "2026-11-29T08:30:00.000Z"),
            ("Nov  9 10:00:00", "2026-11-09T10:00:00.000Z"),
            ("Jan  1 00:00:00", "2027-01-01T00:00:00.000Z"), ("1129 10:00:00.5", "2026-11-29T10:00:00.500Z"),
            ("29 Nov 2026 10:00:00.123", "2026-11-29T10:00:00.123Z"),
            ("261129 10:00:00", "2026-11-29T10:00:00.000Z"),
            ("2026-11-29  9:00:00", "2026-11-29T09:00:00.000Z"),
            ("2026/11/29 10:00:00", "2026-11-29T10:00:00.000Z"),
            ("23:59:59.5", "2026-11-28T23:59:59.500Z"), ("00:30:00", "2026-11-29T00:30:00.000Z"),
            // Ten hours in the future are nearer than fourteen in the past, and were never the right ones.
            ("10:00:00", "2026-11-28T10:00:00.000Z"),
            ("Sun 2026-11-29 10:00:00 UTC", "2026-11-29T10:00:00.000Z"),
            ("Nov 29, 2026 12:00:00 AM", "2026-11-29T00:00:00.000Z"),
            ("Nov 29, 2026 12:00:00 PM", "2026-11-29T12:00:00.000Z"),
            ("Nov 9, 2026 1:00:00 pm", "2026-11-09T13:00:00.000Z"),
        ])
    func forms(text: String, wanted: String) {
        #expect(time(text) == wanted)
    }

    @Test(
        "invalid times are refused",
        arguments: [
            "", "yesterday", "2026-02-30 10:00:00", "2026-11-29", "29/Now/2026:10:00:00", "24:00:00.000",
            "Nov 29, 2026 13:00:00 PM", "Nov 29, 2026 0:10:00 AM", "Nov 29, 2026 1:00:00",
        ])
    func none(text: String) {
        #expect(time(text) == nil)
    }

    private func time(_ text: String) -> String? {
        Array(text.utf8).withUnsafeBufferPointer { TextTime.parse($0, zone: .utc, now: testNow) }.map {
            "\($0)"
        }
    }
}

@Suite("The parts of a time")
struct TimePartsTests {
    private let day = Timestamp(seconds: 1_795_910_400, nanoseconds: 0)

    private func parts(_ month: Int, _ day: Int, year: Int? = 2026, second: Int = 0) -> TimeParts {
        var parts = TimeParts()
        (parts.year, parts.month, parts.day, parts.second) = (year, month, day, second)
        return parts
    }

    private func time(_ parts: TimeParts, at now: Timestamp? = nil) -> String? {
        parts.time(zone: .utc, isUTC: true, now: now ?? day).map { "\($0)" }
    }

    @Test("a date that does not exist is no time")
    func noDate() {
        #expect(time(parts(2, 28)) == "2026-02-28T00:00:00.000Z")
        for (month, day) in [(2, 29), (2, 30), (4, 31), (0, 1), (13, 1), (1, 0), (1, 32)] {
            #expect(time(parts(month, day)) == nil, "\(month)-\(day)")
        }
        #expect(time(parts(2, 29, year: 2028)) == "2028-02-29T00:00:00.000Z")
    }

    @Test("a date without a year is of the year that is nearest to now, and 29 February of a leap year")
    func noYear() {
        let newYear = Timestamp(seconds: 1_798_761_600, nanoseconds: 0)
        #expect("\(newYear)" == "2027-01-01T00:00:00.000Z")
        #expect(time(parts(12, 31, year: nil), at: newYear) == "2026-12-31T00:00:00.000Z")
        #expect(time(parts(1, 1, year: nil), at: newYear) == "2027-01-01T00:00:00.000Z")
        #expect(time(parts(2, 29, year: nil), at: newYear) == "2028-02-29T00:00:00.000Z")
        #expect(time(parts(2, 30, year: nil), at: newYear) == nil)
    }

    @Test("a time without a date is of the last day on which it was, or within the next hour")
    func noDay() {
        var parts = TimeParts()
        parts.hasDate = false
        parts.second = 3600
        #expect(time(parts) == "2026-11-29T01:00:00.000Z")
        parts.second = 3601
        #expect(time(parts) == "2026-11-28T01:00:01.000Z")
    }

    @Test("letters mean the offset that they usually have; IST has several, and none")
    func letters() {
        for (letters, hours) in [("CEST", 2), ("PST", -8), ("SAST", 2), ("IST", nil), ("CES", nil)] {
            Array(letters.utf8).withUnsafeBytes { text in
                var parts = parts(11, 29, second: 36_000)
                parts.letters = Bytes(text)
                #expect(did(parts.takeUsualOffset()) == (hours != nil), "\(letters)")
                #expect(parts.offset == hours.map { $0 * 3600 })
            }
        }
        var summer = parts(7, 1, second: 36_000)
        summer.offset = 7200
        #expect(time(summer) == "2026-07-01T08:00:00.000Z")
    }

    private func did<Value>(_ value: Value) -> Value { value }
}
