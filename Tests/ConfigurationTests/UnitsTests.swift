import Configuration
import Testing

@Suite("Units")
struct UnitsTests {
    @Test(
        "durations take each unit, several of them, and decimals",
        arguments: [
            ("250ms", Duration.milliseconds(250)), ("6s", .seconds(6)), ("2m", .seconds(120)),
            ("12h", .seconds(43_200)),
            ("25d", .seconds(25 * 86_400)), ("1h30m", .seconds(5_400)), ("0.5s", .milliseconds(500)),
            ("0s", .zero),
            ("-5s", .seconds(-5)), ("1.25h", .seconds(4_500)), ("0", .zero),
        ])
    func durations(text: String, duration: Duration) {
        #expect(DurationText.parse(text) == duration)
    }

    @Test(
        "invalid durations are refused",
        arguments: ["", "6", "6 s", "s", "6x", "1.s", "6s ", "--6s", "9999999999999d"])
    func notDurations(text: String) {
        #expect(DurationText.parse(text) == nil)
    }

    @Test(
        "MB is 10^6 bytes and MiB 2^20",
        arguments: [
            ("1B", 1), ("1kB", 1_000), ("1KB", 1_000), ("1KiB", 1_024), ("10MB", 10_000_000),
            ("10MiB", 10_485_760),
            ("2GB", 2_000_000_000), ("2GiB", 2_147_483_648), ("1TB", 1_000_000_000_000),
            ("1TiB", 1_099_511_627_776),
            ("1.5KiB", 1_536), ("0", 0), ("0B", 0),
        ])
    func sizes(text: String, bytes: Int) {
        #expect(SizeText.parse(text) == bytes)
    }

    @Test(
        "invalid sizes are refused",
        arguments: ["", "10", "10M", "10mb", "1.5B", "-1MB", "99999999TiB", "1 MB", "MiB", "1e3B"])
    func notSizes(text: String) {
        #expect(SizeText.parse(text) == nil)
    }

    @Test("printed values read back as the same")
    func printsReadBack() {
        for bytes in [
            0, 1, 999, 1_000, 1_024, 1_000_000, 1_048_576, 10 << 20, 24 << 10, 1 << 47, 123_456_789,
        ] {
            #expect(SizeText.parse(SizeText.print(bytes)) == bytes)
        }
        for milliseconds in [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000, 2_160_000_000] {
            let duration = Duration.milliseconds(milliseconds)
            #expect(DurationText.parse(DurationText.print(duration)) == duration)
        }
        #expect(SizeText.print(10 << 20) == "10MiB")
        #expect(SizeText.print(1_000_000) == "1MB")
        #expect(DurationText.print(.seconds(25 * 86_400)) == "25d")
        #expect(DurationText.print(.seconds(90)) == "90s")
    }
}
