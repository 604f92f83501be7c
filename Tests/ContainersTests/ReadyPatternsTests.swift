import TestKit
import Testing

@testable import Containers

@Suite("Quick looks for ready patterns")
struct ReadyPatternsTests {
    /// Parts of matches, of near misses, and what is between them.
    private static let parts = [
        "1.2.3.4", "192.168.0.17", "1.2.3", "12.5", "0.1234567", "1..2", ".", "1", "23", "456",
        "::", ":", "1:2:3:4:5:6:7:8", ":1:2:3:4:5:6:7:", "10:00:00", "a:b:c", "FE80", "ff", "abcdef",
        "a@b", "@", "%40", "%25", "%20", "%", "&#", "&commat", "&c", "&", "\\u0040", "\\x40", "\\", "＠",
        "bearer", "BeArEr", "bear", "er ", "become", "eyJ", "yJ", "J", "y", "e", "b",
        "4111 1111 1111 1111", "４", "2026-11-30T10:00:00.123Z", "3-", "5/", "6_", " ", "\t", "\u{A0}", "-",
        "ж",
    ]

    private func bytes(of text: String) -> [UInt8] { Array(text.utf8) }

    private func isFound(_ pattern: TextPattern, in text: [UInt8]) -> Bool {
        text.withUnsafeBufferPointer { pattern.mayBe(in: $0, isLine: false) }
    }

    @Test(
        "one look for several patterns finds what a look for each finds, wherever it stands",
        arguments: [1, 2, 3, 4] as [UInt64])
    func looksAgree(seed: UInt64) throws {
        let all = try TextPattern.Ready.allCases.map { try TextPattern($0.rawValue, at: "") }
        var random = SplitMix64(seed: seed)
        var held = 0
        for _ in 0..<5_000 {
            var text = String(repeating: "x", count: Int.random(in: 0..<70, using: &random))
            for _ in 0..<Int.random(in: 0..<12, using: &random) {
                text += ReadyPatternsTests.parts.randomElement(using: &random) ?? ""
                if Int.random(in: 0..<5, using: &random) == 0 {
                    text += String(repeating: "g", count: Int.random(in: 0..<40, using: &random))
                }
            }
            let wanted = all.filter { _ in Bool.random(using: &random) }
            var patterns = ReadyPatterns.none
            for case let ready? in wanted.map(\.ready) { patterns.insert(ready) }
            let bytes = bytes(of: text)
            let expected = wanted.contains { isFound($0, in: bytes) }
            held += expected ? 1 : 0
            #expect(bytes.withUnsafeBytes { patterns.mayBe(in: $0) } == expected, "seed \(seed): \(text)")
        }
        #expect((500...4_500).contains(held), "\(held) of 5,000")
    }

    @Test(
        "each pattern's example is found at every place of a long text",
        arguments: PatternTests.ready.filter { TextPattern.Ready(rawValue: $0.0) != nil })
    func everyPlace(name: String, text: String, clean: String) throws {
        let pattern = try TextPattern(name, at: "")
        let ready = try #require(pattern.ready)
        var patterns = ReadyPatterns.none
        patterns.insert(ready)
        for before in 0..<100 {
            let whole = bytes(of: String(repeating: "~", count: before) + text + "~")
            #expect(
                whole.withUnsafeBytes { patterns.mayBe(in: $0) } == isFound(pattern, in: whole),
                "\(before) bytes before \(text)")
        }
    }

    @Test("a line with escapes may always hold something, and an empty one never does")
    func escapes() throws {
        var patterns = ReadyPatterns.none
        patterns.insert(.jwt)
        #expect(bytes(of: #"{"a":"\n"}"#).withUnsafeBytes { patterns.mayBe(inLine: $0) })
        #expect(!bytes(of: #"{"a":"n"}"#).withUnsafeBytes { patterns.mayBe(inLine: $0) })
        #expect(![UInt8]().withUnsafeBytes { patterns.mayBe(inLine: $0) })
    }
}
