import EventLoops
import Testing

@Suite("Timestamp as text")
struct TimestampTextTests {
    @Test(
        "RFC 3339 in UTC with milliseconds, also before 1970 and on leap days",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_795_168_800_123, "2026-11-20T10:00:00.123Z"), (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"), (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (-2_203_891_200_000, "1900-03-01T00:00:00.000Z"),
        ])
    func text(milliseconds: Int64, expected: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == expected)
    }
}
