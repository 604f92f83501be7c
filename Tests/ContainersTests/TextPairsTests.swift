import TestKit
import Testing

@testable import Containers

@Suite("Pairs of bytes that prove a text lacks something")
struct TextPairsTests {
    private let alphabet = ["a", "b", "A", "B", "k", "K", "0", "1", "-", " ", "é", "\u{212A}", "ſ", "s", "."]

    private func pairs(_ text: String) -> TextPairs {
        Array(text.utf8).withUnsafeBufferPointer { TextPairs(of: $0) }
    }

    private func required(_ part: String) -> TextPairs {
        Array(part.utf8).withUnsafeBufferPointer { TextPairs(requiredBy: $0) }
    }

    private func draw(_ lengths: ClosedRange<Int>, using random: inout SplitMix64) -> String {
        (0..<Int.random(in: lengths, using: &random)).map { _ in alphabet.randomElement(using: &random) ?? "a"
        }
        .joined()
    }

    @Test(
        "a text is never said to lack a part that it contains, in capitals or not",
        arguments: [1, 2, 3] as [UInt64])
    func partsAreNotMissed(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<5_000 {
            let part = draw(0...4, using: &random)
            let text = draw(0...60, using: &random) + part + draw(0...60, using: &random)
            #expect(!pairs(text).lacks(required(part)), "seed \(seed): \(part) in \(text)")
            // What is folded at the publishing of a container is compared with folded texts.
            #expect(
                !pairs(text.lowercased()).lacks(required(part.lowercased())),
                "seed \(seed): \(part) in \(text)")
        }
    }

    @Test("most texts without a part are said to lack it")
    func missingPartsAreTold() {
        let names = (0..<200).map { "holiday-\($0).avi" }
        #expect(names.count { pairs($0).lacks(required("unwanted-7")) } == 200)
        #expect(required("x") == .none && required("") == .none && required("é-") == .none)
        #expect(!pairs(String(repeating: "ab", count: 65)).lacks(required("xyz")), "long texts are looked at")
        #expect(!pairs("é").lacks(required("xyz")), "and those that are not ASCII")
    }

    /// A random expression that is not too simple.
    private func drawExpression(depth: Int, using random: inout SplitMix64) -> String {
        let choice = Int.random(in: 0..<(depth > 0 ? 9 : 3), using: &random)
        func inner() -> String { drawExpression(depth: depth - 1, using: &random) }
        switch choice {
        case 0: return draw(1...4, using: &random).split(separator: ".").joined(separator: "\\.")
        case 1:
            return ["[ab]", "[^k]", ".", "\\d", "[a-k0]", "\\w", "(?i:kS)", "\\x41"].randomElement(
                using: &random)
                ?? "."
        case 2: return ["^a", "b$", "\\b"].randomElement(using: &random) ?? "^a"
        case 3, 4: return inner() + inner()
        case 5: return "(?:\(inner())|\(inner()))"
        case 6:
            return "(?:\(inner()))" + (["*", "?", "+", "{2}", "{0,3}"].randomElement(using: &random) ?? "*")
        case 7: return "(\(inner()))"
        default: return inner() + ".*" + inner()
        }
    }

    @Test("a text is never said to lack an expression that matches it", arguments: [4, 5, 6] as [UInt64])
    func expressionsAreNotMissed(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var found = 0
        var spared = 0
        for _ in 0..<1_500 {
            let text = drawExpression(depth: 3, using: &random)
            let expression = try Expression(text, ignoreCase: Bool.random(using: &random), at: "test")
            for _ in 0..<20 {
                let subject = draw(0...20, using: &random)
                let isFound = Array(subject.utf8).withUnsafeBufferPointer { expression.finds(in: $0) }
                let lacks = pairs(subject).lacks(expression.requiredPairs)
                #expect(!(isFound && lacks), "seed \(seed): \(text) in \(subject)")
                found += isFound ? 1 : 0
                spared += lacks ? 1 : 0
            }
        }
        // Both happen often, or the test shows nothing.
        #expect(found > 5_000 && spared > 1_000, "seed \(seed): \(found) found, \(spared) spared")
    }

    @Test(
        "the pairs that an expression requires are found in it",
        arguments: [
            ("^unwanted-[a-z]+7", "unwanted-"), ("error.*timeout", "errortimeout"),
            ("(?i)PayMent", "payment"),
            ("(abcd|xbcd)", "bcd"), ("abc|xyz", ""), ("a*", ""), ("[0-9]+", ""), ("x", ""),
        ])
    func requiredPieces(expression: String, pieces: String) throws {
        let pairs = try Expression(expression, ignoreCase: false, at: "test").requiredPairs
        // Joined pieces have a pair more than the pieces.
        let most = required(pieces)
        #expect(!most.lacks(pairs), "\(expression)")
        #expect((pairs == .none) == pieces.isEmpty, "\(expression)")
    }
}
