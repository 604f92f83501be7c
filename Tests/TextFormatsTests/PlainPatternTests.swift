import CRE2
import EventLoops
import TestKit
import Testing

@testable import TextFormats

@Suite("Plain patterns")
struct PlainPatternTests {
    /// The places of the groups by a match without an automaton; nil if the text does not match so.
    private func plain(_ pattern: PlainPattern, _ text: [UInt8], _ groups: Int) -> [[Int64]]? {
        var places = [cre2_range](repeating: cre2_range(), count: groups)
        let isFound = text.withUnsafeBytes { text in
            places.withUnsafeMutableBufferPointer { places in
                pattern.match(Bytes(text), places.baseAddress.unsafelyUnwrapped)
            }
        }
        return isFound ? places.map { [$0.start, $0.length] } : nil
    }

    /// The places of the groups by RE2.
    private func automaton(_ expression: TextExpression, _ text: [UInt8]) -> [[Int64]]? {
        var places: [[Int64]]?
        _ = text.withUnsafeBytes { text in
            expression.match(Bytes(text)) { places = $0.map { [$0.start, $0.length] } }
        }
        return places
    }

    @Test(
        "patterns whose runs are ended by another character are plain",
        arguments: [
            #"^(?P<client>\S+) \S+ \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" (?P<status>\d+)$"#,
            #"^(?P<time>\d+-\d+-\d+ [0-9:.]+) +(?P<level>[A-Z]+) \[(?P<thread>[^\]]*)\] (?P<message>.*)"#,
            #"^(?P<a>(?:\w+):(\d*));(?P<b>[^;]*)"#, #"^(?P<a>.*)$"#, #"^(?P<a>[a-z_-]+)="#,
        ])
    func plain(pattern: String) {
        #expect(PlainPattern(pattern) != nil)
    }

    @Test(
        "all others are for RE2",
        arguments: [
            #"(?P<a>\S+)"#, #"^(?P<a>\S+)\.(?P<b>.*)"#, #"^(?P<a>x|y)"#, #"^(?P<a>\S+)?"#, #"^(?P<a>\S+?) "#,
            #"^(?P<a>\d{4})"#, #"^(?i)(?P<a>x+)"#, #"^(?P<a>[[:alpha:]]+)"#, #"^(?P<a>\pL+)"#, #"^(?P<a>é+)"#,
            #"^(?P<a>x+)$y"#, #"^(?P<a>\bx)"#, #"^(?P<a>[\d-x]+)"#, #"^(?P<a>\x41)"#, #"^(?P<a>a*)a"#,
            #"^(?P<a>a*)b*a"#,
        ])
    func others(pattern: String) {
        #expect(PlainPattern(pattern) == nil)
    }

    @Test("a match has the places that RE2 finds, and what RE2 does not match is no match")
    func agreement() throws {
        let pieces = [
            #"(?P<a>\S+)"#, #"(?P<b>[^"]*)"#, #"(\d+)"#, #"(?:[a-c]*)"#, #"(?P<c>.*)"#, #"\w+"#, #"[^\]]*"#,
            "x",
            " ", "\"", #"\["#, #"\]"#, ":", "-", #"\s*"#, #"\."#,
        ]
        let letters = Array("abcx19 \"[]:-.\t\n_".utf8) + [0xC3, 0xA9, 0xFF, 0x00, 0x0B]
        var random = RepeatableRandom(seed: 541)
        var matches = 0
        for _ in 0..<4_000 {
            var chosen = (0..<Int.random(in: 1...7, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            // A name only once.
            for name in ["a", "b", "c"] {
                let places = chosen.indices.filter { chosen[$0].contains("<\(name)>") }
                for place in places.dropFirst() { chosen[place] = "-" }
            }
            let text = "^(?P<all>" + chosen.joined() + ")" + (Bool.random(using: &random) ? "$" : "")
            guard let pattern = PlainPattern(text) else { continue }
            let expression = try TextExpression(text, key: "pattern")
            for _ in 0..<30 {
                let bytes = (0..<Int.random(in: 0...9, using: &random)).map { _ in
                    letters[Int.random(in: 0..<letters.count, using: &random)]
                }
                guard let found = plain(pattern, bytes, expression.groups.count) else { continue }
                matches += 1
                #expect(found == automaton(expression, bytes), "\(text) \(bytes)")
            }
        }
        #expect(matches > 500, "\(matches)")
    }
}
