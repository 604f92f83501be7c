import Configuration
import Glibc
import TestKit
import Testing

@Suite("Bounds of the configuration")
struct BoundsTests {
    static let largest = 1 << 20

    /// Texts of the largest size that go as deep as they can.
    static let deep: [(name: String, text: String)] = [
        ("a dotted key", Array(repeating: "a", count: 500_000).joined(separator: ".") + " = 1"),
        (
            "a dotted key of 32,850 parts",
            Array(repeating: "a", count: 32_850).joined(separator: ".") + " = 1"
        ),
        ("a quoted dotted key", Array(repeating: "\"\"", count: 300_000).joined(separator: ".") + " = 1"),
        ("a heading", "[" + Array(repeating: "a", count: 500_000).joined(separator: ".") + "]"),
        ("a heading of a list", "[[" + Array(repeating: "a", count: 500_000).joined(separator: ".") + "]]"),
        (
            "a dotted key in a table",
            "a = { " + Array(repeating: "a", count: 500_000).joined(separator: ".") + " = 1 }"
        ),
        ("lists", "a = " + String(repeating: "[", count: 1_000_000)),
        (
            "lists with ends",
            "a = " + String(repeating: "[", count: 500_000) + String(repeating: "]", count: 500_000)
        ),
        ("lists over lines", "a = " + String(repeating: "[\n", count: 500_000)),
        ("tables", "a = " + String(repeating: "{a=", count: 300_000)),
        (
            "tables of dotted keys",
            "a = " + String(repeating: "{a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a=", count: 30_000)
        ),
        ("dots behind a string that never ends", "a = \"\nb = " + String(repeating: ".", count: 900_000)),
    ]

    @Test(
        "a text with too deep nesting is a mistake with its position, and does not end the program",
        arguments: deep.indices)
    func depthIsBounded(index: Int) {
        let sample = BoundsTests.deep[index]
        let problems = MistakesTests.problems("[queue]\n" + sample.text + "\n")
        #expect(problems.first?.code == .syntax, "\(sample.name)")
        #expect(
            problems.first?.position?.line ?? 0 >= 2,
            "\(sample.name): \(problems.first?.text.prefix(300) ?? "")")
    }

    @Test("16 parts and 16 levels are read, and a mistake before a deeper place is reported first")
    func depthThatIsAllowed() {
        let parts = Array(repeating: "a", count: 16).joined(separator: ".")
        let levels = String(repeating: "[", count: 16) + String(repeating: "]", count: 16)
        #expect(MistakesTests.problems("\(parts) = \(levels)").map(\.code) == [.unknownKey])
        #expect(
            MistakesTests.problems("\(parts).a = 1").first?.message
                == "not TOML: a key has more than 16 parts")
        #expect(
            MistakesTests.problems("a = [\(levels)]").first?.message
                == "not TOML: values are nested more than 16 levels deep")
        let open = String(repeating: "[queue\n", count: 30)
        #expect(MistakesTests.problems(open).first?.position?.line == 1)
    }

    @Test("eight times as many unknown settings, lists, apps and destinations take eight times as long")
    func mistakesAreBounded() {
        let texts: [(Int) -> String] = [
            { (0..<$0).map { "unknown\($0) = 1\n" }.joined() },
            { "[queue]\n" + (0..<$0).map { "max_sise\($0) = 1\n" }.joined() },
            { String(repeating: "[[destination]]\ntokn = 1\n", count: $0) },
            { (0..<$0).map { "[apps.a\($0)]\nx = 1\n" }.joined() },
            { String(repeating: "[[priorities.rule]]\nevnt = \"a\"\n", count: $0) },
        ]
        for text in texts {
            let (_, few) = read(text(2_500))
            let (problems, many) = read(text(20_000))
            #expect(problems.count <= 202, "\(text(1))")
            #expect(
                problems.contains { $0.message.hasSuffix("from here on, not listed") && $0.position != nil })
            // Eight times the text; with a square in it, it was 64 times, and 208 s of a release build.
            #expect(many < .seconds(1) + few * 24, "\(text(1)): \(few), then \(many)")
        }
    }

    /// The mistakes in a text, and the processor's time for them.
    private func read(_ text: String) -> (problems: [Problem], time: Duration) {
        func now() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        let before = now()
        return (MistakesTests.problems(text), now() - before)
    }

    @Test("a hundred errors hide no warning, and a hundred warnings no error")
    func severitiesAreListedApart() {
        let text =
            (0..<300).map { "unknown\($0) = 1\n" }.joined()
            + "[queue]\nmax_size = \"1MiB\"\n[dispatch]\nbatch_size = \"1MiB\"\n"
        let problems = MistakesTests.problems(text)
        #expect(problems.count { $0.severity == .error } == 101)
        #expect(problems.count { $0.severity == .warning } == 1)
        #expect(
            problems.contains {
                $0.message == "and 200 more mistakes from here on, not listed" && $0.position?.line == 101
            })
    }

    @Test("lines that end with CR LF have their own numbers and are shown alone")
    func linesOfWindows() {
        let problems = MistakesTests.problems("[queue]\r\nmax_sise = 1\r\nmax_age = = 1\r\n")
        #expect(problems.map { $0.position?.line } == [2, 3])
        #expect(problems.map(\.sourceLine) == ["max_sise = 1", "max_age = = 1"])
    }

    @Test("a file that is not UTF-8 is refused with the position; a secret in it is not shown")
    func filesThatAreNotUTF8() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/spoolship.toml"
        let file = try #require(fopen(path, "w"))
        let bytes =
            Array("[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntoken = \"abc".utf8) + [0xE9]
            + Array("\"\n".utf8)
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
        let error = #expect(throws: ConfigurationError.self) { try Settings.load(path: path) }
        #expect(
            error?.description
                == "\(path):4:13: not UTF-8: byte 0xE9; TOML is UTF-8, save the file in that encoding")
    }
}
