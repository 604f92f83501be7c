import EventLoops
import Model
import Testing

@testable import Events

@Suite("The time that receivers read")
struct WrittenTimeTests {
    @Test(
        "a numeric timestamp is sent as RFC 3339 with all its digits, so that no receiver guesses the unit",
        arguments: [
            ("1795168800", "2026-11-20T10:00:00.000Z"), ("1795168800.5", "2026-11-20T10:00:00.500Z"),
            ("1795168800123", "2026-11-20T10:00:00.123Z"),
            ("1795168800123456", "2026-11-20T10:00:00.123456Z"),
            ("1795168800123456789", "2026-11-20T10:00:00.123456789Z"),
            (#""2026-11-20T10:00:00.25Z""#, "2026-11-20T10:00:00.25Z"),
        ], [#"{"name":"a","timestamp":T,"n":1}"#, #"{"msg":"a","timestamp":T}"#])
    func numbers(time: (number: String, text: String), line: String) throws {
        var reading = Reading()
        let parts = line.split(separator: "T")
        try #require(parts.count == 2)
        let (verdict, output) = reading.read("\(parts[0])\(time.number)\(parts[1])")
        #expect(verdict.kind == .accepted)
        let expected = "\(parts[0])\"\(time.text)\"\(parts[1].dropLast()),"
        #expect(output?.hasPrefix(expected) == true, "\(output ?? "nothing")")
        let instant = Array(time.text.utf8).withUnsafeBufferPointer { TimestampText.parse($0) }
        #expect(verdict.eventTime == instant)
    }

    @Test("a number that is not a record's time stays as data")
    func otherNumbers() throws {
        var reading = Reading()
        let output = try #require(reading.read(#"{"msg":"a","timestamp":17}"#).output)
        #expect(output.hasPrefix(#"{"msg":"a","timestamp":17,"#), "\(output)")
    }
}
