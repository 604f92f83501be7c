import EventLoops
import Glibc
import TestKit
@testable import TimeZones
import Testing

@Suite("Time zones")
struct TimeZoneTests {
    private func utc(_ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0) -> Timestamp {
        let days = LocalDate(year: year, month: month, day: day).dayNumber
        return Timestamp(milliseconds: Int64(days * 86_400 + hour * 3600 + minute * 60) * 1000)
    }

    @Test("a zone is UTC by its rules, whatever its name")
    func alwaysUTC() throws {
        let loader = TimeZoneLoader()
        #expect(TimeZoneRules.utc.isAlwaysUTC)
        for name in ["Etc/UTC", "Etc/GMT", "Etc/Zulu"] {
            #expect(try loader.load(name).isAlwaysUTC, "\(name)")
        }
        for name in ["Europe/London", "Europe/Rome", "Etc/GMT+1"] {
            #expect(try !loader.load(name).isAlwaysUTC, "\(name)")
        }
        #expect(try #require(TimeZoneRules(rule: "UTC0")).isAlwaysUTC)
        #expect(try !#require(TimeZoneRules(rule: "GMT0BST,M3.5.0/1,M10.5.0")).isAlwaysUTC)
    }

    @Test("offsets and local dates around changes, also before and after the file's transitions")
    func offsets() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        for year in [2026, 2037, 2038, 2100] {
            #expect(rome.offset(at: utc(year, 1, 1)) == 3600)
            #expect(rome.offset(at: utc(year, 7, 1)) == 7200)
        }
        let change = utc(2026, 3, 29, 1)
        #expect(rome.offset(at: Timestamp(nanoseconds: change.nanoseconds - 1)) == 3600)
        #expect(rome.offset(at: change) == 7200)
        #expect(rome.date(at: utc(2026, 11, 20, 22, 59)).description == "2026-11-20")
        #expect(rome.date(at: utc(2026, 11, 20, 23, 0)).description == "2026-11-21")
        let span = rome.span(at: utc(2026, 7, 1))
        #expect(span.from == change && span.until == utc(2026, 10, 25, 1) && span.offset == 7200)
        #expect(rome.offset(at: Timestamp(nanoseconds: .min)) == 2996)
        #expect(rome.offset(at: Timestamp(nanoseconds: .max)) == 7200)
        #expect(
            TimeZoneRules.utc.offset(at: change) == 0
                && TimeZoneRules.utc.date(at: utc(1969, 12, 31, 23, 59)).dayNumber == -1)
    }

    @Test("ga08: a missing local time is the first instant after the gap, a doubled one the earlier instant")
    func ga08_gapsAndOverlaps() throws {
        let rome = try TimeZoneLoader().load("Europe/Rome")
        func instant(_ year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int = 0) -> Timestamp {
            rome.instant(
                of: LocalDate(year: year, month: month, day: day), secondOfDay: hour * 3600 + minute * 60)
        }
        #expect(instant(2026, 11, 21, 4) == utc(2026, 11, 21, 3))
        #expect(instant(2026, 3, 29, 2, 30) == utc(2026, 3, 29, 1))
        #expect(instant(2026, 3, 29, 3) == utc(2026, 3, 29, 1))
        #expect(instant(2026, 3, 29, 1, 59) == utc(2026, 3, 29, 0, 59))
        #expect(instant(2026, 10, 25, 2, 30) == utc(2026, 10, 25, 0, 30))
        #expect(instant(2026, 10, 25, 3) == utc(2026, 10, 25, 2))
        #expect(instant(2090, 3, 26, 2, 30) == utc(2090, 3, 26, 1))
        // Samoa left out 30 December 2011.
        let samoa = try TimeZoneLoader().load("Pacific/Apia")
        #expect(
            samoa.instant(of: LocalDate(year: 2011, month: 12, day: 30), secondOfDay: 4 * 3600)
                == utc(2011, 12, 30, 10)
        )
        // Negative daylight saving, a change by half an hour, rules of the southern half.
        let dublin = try TimeZoneLoader().load("Europe/Dublin")
        #expect(dublin.offset(at: utc(2060, 1, 1)) == 0 && dublin.offset(at: utc(2060, 7, 1)) == 3600)
        let howe = try TimeZoneLoader().load("Australia/Lord_Howe")
        #expect(howe.offset(at: utc(2060, 1, 1)) == 39_600 && howe.offset(at: utc(2060, 7, 1)) == 37_800)
    }

    @Test(
        "offsets, dates and times agree with the date command, at random instants",
        arguments: [
            "Europe/Rome", "America/New_York", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe",
            "Africa/Casablanca", "Pacific/Chatham", "America/Sao_Paulo", "Asia/Tehran", "Europe/Dublin",
            "Antarctica/Troll",
            "Asia/Gaza",
        ])
    func agreesWithDate(name: String) throws {
        var random = SplitMix64(seed: Seeds.one(4))
        let zone = try TimeZoneLoader().load(name)
        let directory = try TemporaryDirectory()
        let instants = (0..<2000).map { _ in Int64.random(in: -2_000_000_000...4_000_000_000, using: &random)
        }
        let input = try #require(fopen("\(directory.path)/instants", "w"))
        fputs(instants.map { "@\($0)\n" }.joined(), input)
        fclose(input)
        // A process of its own: the zone of libc is global, and other tests run beside this one.
        let command = "TZ=\(name) date -f \(directory.path)/instants '+%::z %F %w %H:%M:%S'"
        let pipe = try #require(popen(command, "r"))
        defer { pclose(pipe) }
        var line = [CChar](repeating: 0, count: 128)
        for seconds in instants {
            _ = try #require(fgets(&line, 128, pipe))
            var expected = String(
                decoding: line.prefix { $0 > 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            // How date writes an offset that nobody knows: before the station was built.
            if expected.hasPrefix("-00:00:00") { expected = "+" + expected.dropFirst() }
            let offset = zone.offset(at: Timestamp(milliseconds: seconds * 1000))
            let date = zone.date(at: Timestamp(milliseconds: seconds * 1000))
            let second = Int(seconds) + offset - date.dayNumber * 86_400
            func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
            func clock(_ value: Int) -> String {
                "\(two(value / 3600)):\(two(value / 60 % 60)):\(two(value % 60))"
            }
            let ours =
                "\(offset < 0 ? "-" : "+")\(clock(abs(offset))) \(date) \(date.weekday) \(clock(second))"
            guard ours == expected else {
                Issue.record("\(name) at \(seconds): \(ours), not \(expected)")
                return
            }
            let back = zone.instant(of: date, secondOfDay: second).milliseconds / 1000
            // A local time that comes twice is given back as its earlier instant.
            guard back == seconds || (back < seconds && back + 7200 >= seconds) else {
                Issue.record("\(name): \(seconds) came back as \(back)")
                return
            }
        }
    }

    @Test("invalid names are refused, and for unknown ones the message says what to install")
    func names() {
        func code(_ name: String) -> TimeZoneError.Code? {
            do {
                _ = try TimeZoneLoader().load(name)
                return nil
            } catch { return error.code }
        }
        for name in [
            "", "../../etc/passwd", "/etc/localtime", "Europe//Rome", "Europe/Rome\n", ".", "Europe/..",
        ] {
            #expect(code(name) == .badName, "\(name)")
        }
        #expect(code("Europe/Atlantis") == .unknown)
        #expect(code("Europe") == .unknown)
        #expect(code("UTC") == nil && code("Etc/UTC") == nil)
        #expect(code("tzdata.zi") == .badName)
        #expect(code("zone1970_tab") == .unknown)
    }

    @Test(
        "TZ overrides the machine's zone: a name, a path, a rule, or empty for UTC; other values are refused"
    )
    func zoneOfTheEnvironment() throws {
        let directory = try TemporaryDirectory()
        #expect(symlink("/usr/share/zoneinfo/Asia/Tokyo", "\(directory.path)/local") == 0)
        var loader = TimeZoneLoader()
        loader.localFile = "\(directory.path)/local"
        let july = Timestamp(milliseconds: 1_783_000_000_000)
        let january = Timestamp(milliseconds: 1_799_000_000_000)
        for (variable, summer, winter) in [
            (nil, 9, 9), ("", 0, 0), ("Europe/Rome", 2, 1), (":Europe/Rome", 2, 1), ("UTC", 0, 0),
            ("<-03>3", -3, -3),
            ("/usr/share/zoneinfo/Europe/Rome", 2, 1), ("CET-1CEST,M3.5.0,M10.5.0/3", 2, 1), ("EST5", -5, -5),
            ("\(directory.path)/local", 9, 9),
        ] as [(String?, Int, Int)] {
            let zone = try loader.loadLocal(variable)
            #expect(
                zone.offset(at: july) == summer * 3_600 && zone.offset(at: january) == winter * 3_600,
                "\(zone.name)")
        }
        for none in ["Europe/Nowhere", "../../etc/passwd", "/etc/passwd", "CET-1CEST,", "\u{1b}[31m"] {
            #expect(throws: TimeZoneError.self) { try loader.loadLocal(none) }
        }
    }

    @Test("a damaged file is refused, whatever its bytes, without a crash")
    func damagedFiles() throws {
        let directory = try TemporaryDirectory()
        var loader = TimeZoneLoader()
        loader.localFile = "\(directory.path)/none"
        #expect(try loader.loadLocal() == .utc)
        var random = SplitMix64(seed: Seeds.one(8))
        let file = open("/usr/share/zoneinfo/Europe/Rome", O_RDONLY)
        var good = [UInt8](repeating: 0, count: 4096)
        good.removeLast(good.count - read(file, &good, good.count))
        close(file)
        #expect(throws: Never.self) { try TimeZoneRules(name: "x", tzif: good) }
        for count in 0..<good.count {
            #expect(throws: TimeZoneError.self) { try TimeZoneRules(name: "x", tzif: Array(good[..<count])) }
        }
        for _ in 0..<20_000 {
            var bytes = good
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8(
                    truncatingIfNeeded: random.next())
            }
            guard let zone = try? TimeZoneRules(name: "x", tzif: bytes) else { continue }
            for time in [Int64.min, -1, 0, 1_795_168_800_000_000_000, .max] {
                _ = zone.date(at: Timestamp(nanoseconds: time))
                _ = zone.instant(of: zone.date(at: Timestamp(nanoseconds: time)), secondOfDay: 14_400)
            }
        }
    }

    @Test("the rules of footers are applied")
    func footers() throws {
        for text in [
            "EST5EDT,M3.2.0,M11.1.0", "<+0330>-3:30", "IST-1GMT0,M10.5.0,M3.5.0/1",
            "X12Y,J1/-167,365/167:59:59",
        ] {
            #expect(
                text == "X12Y,J1/-167,365/167:59:59"
                    ? FooterRule(text.utf8) == nil : FooterRule(text.utf8) != nil,
                "\(text)")
        }
        for text in [
            "", "E", "EST", "EST5EDT", "EST5EDT,M13.1.0,M1.1.0", "EST5EDT,M3.2.0", "<+>",
            "EST5EDT,M3.2.0,M11.1.0x",
        ] {
            #expect(FooterRule(text.utf8) == nil, "\(text)")
        }
        #expect(FooterRule("XXX3YYY,J60/0,J61/0".utf8)?.changes(in: 2024).first?.at == Int64(1_709_262_000))
        #expect(FooterRule("XXX3YYY,59/0,J61/0".utf8)?.changes(in: 2024).first?.at == Int64(1_709_175_600))
    }
}
