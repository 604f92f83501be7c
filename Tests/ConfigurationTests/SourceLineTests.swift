import Configuration
import TestKit
import Testing

@Suite("Source lines in messages")
struct SourceLineTests {
    static let secret = "hunter2-hunter2-hunter2"

    @Test(
        "ac24: a source line beside a mistake hides what may be secret",
        arguments: [
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntokn = \"SECRET\"",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\ntoken = \"SECRET",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\npassword = \"SECRET\"",
            "[[destination]]\nname = \"a\"\nurl = \"https://u:SECRET@a\"",
            "[[destination]]\nname = \"a\"\nurl = \"ftp://a/?key=SECRET\"",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\n[destination.headers]\nHost = \"SECRET\"",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nheaders = { X = \"SECRET\", Y = 1 }",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nheaders = {\n  X = \"SECRET\"",
            "[[destinatin]]\ntoken = = \"SECRET\"",
            "destination = [{ name = \"a\", token = \"SECRET\", x = 1 }]",
            "[[destination]]\nname = \"a\"\nurl = \"https://a\"\nheaders.\"X Y\" = \"SECRET\"",
        ])
    func ac24_sourceLinesHideSecrets(text: String) throws {
        let text = text.split(separator: "SECRET", omittingEmptySubsequences: false).joined(
            separator: SourceLineTests.secret)
        let error = #expect(throws: ConfigurationError.self) {
            try Settings.read([ConfigurationText(file: "t.toml", text: text)])
        }
        let shown = try #require(error).description
        #expect(shown.range(of: "hunter2-hunter2") == nil, "\(shown)")
    }

    @Test("harmless values in a source line are shown")
    func harmlessLinesAreShown() throws {
        for line in ["format = \"ndjsn\"", "tls.ca_file = 3", "request_timeout = 30"] {
            let error = #expect(throws: ConfigurationError.self) {
                try Settings.read([
                    ConfigurationText(
                        file: "t", text: "[[destination]]\nname = \"a\"\nurl = \"https://a\"\n\(line)")
                ])
            }
            #expect(error?.description.range(of: "    \(line)\n") != nil, "\(error?.description ?? "")")
        }
    }
}

@Suite("Any text")
struct AnyTextTests {
    /// The shipped file with what is commented out brought to life here and there, and bytes changed.
    static let shipped = ShippedFile.reference.split(separator: "\n", omittingEmptySubsequences: false).map(
        String.init)

    static func mutation(using random: inout SplitMix64) -> String {
        var lines = shipped
        for index in lines.indices {
            if lines[index].hasPrefix("#"), !lines[index].hasPrefix("# "),
                Int.random(in: 0..<4, using: &random) == 0
            {
                lines[index].removeFirst()
            }
        }
        var bytes = Array(lines.joined(separator: "\n").utf8)
        let tokens = [
            "\"", "[", "]", "[[", "{", "}", "=", "\n", "\"\"\"", "'", "#", "\0", "\u{7F}", "-", "1e999",
            "9999999999999999999", "💥", "\\u", ".", "true", "2026-11-20", "nan", "0x",
        ]
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let place = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 1:
                bytes.removeSubrange(
                    place..<min(bytes.count, place + Int.random(in: 1...200, using: &random)))
            case 2:
                bytes.insert(contentsOf: Array((tokens.randomElement(using: &random) ?? "").utf8), at: place)
            default:
                let end = min(bytes.count, place + Int.random(in: 1...300, using: &random))
                bytes.insert(
                    contentsOf: Array(bytes[place..<end]), at: Int.random(in: 0..<bytes.count, using: &random)
                )
            }
            if bytes.isEmpty { bytes = [0x0A] }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(
        "any text gives settings, or mistakes with positions; never a crash",
        arguments: Seeds.list(20_261_121...20_261_124))
    func fault22_anyTextIsAnswered(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var good = 0
        var bad = 0
        for number in 0..<75 {
            let text = AnyTextTests.mutation(using: &random)
            do {
                let loaded = try Settings.read([ConfigurationText(file: "t.toml", text: text)])
                #expect(loaded.settings.effective.count > 60)
                good += 1
            } catch {
                bad += 1
                #expect(!error.problems.isEmpty, "\(Seeds.again(seed)), text \(number)")
                for problem in error.problems where problem.severity == .error {
                    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).count
                    #expect(problem.position != nil, "\(Seeds.again(seed)), text \(number): \(problem.text)")
                    #expect(
                        (1...max(1, lines)).contains(problem.position?.line ?? 0),
                        "\(Seeds.again(seed)), text \(number)")
                    #expect(!problem.message.isEmpty)
                }
            }
        }
        #expect(bad > 25, "the mutations must do harm: \(good) good, \(bad) bad")
    }
}
