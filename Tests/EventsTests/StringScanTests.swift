import TestKit
import Testing

@testable import Events

/// Strings are read sixteen bytes at a time where they can be; one character at a time says what is right.
@Suite("Strings: the quick way and the careful one")
struct StringScanTests {
    /// What came of reading one string.
    private struct Reading: Equatable {
        let isString: Bool
        let isEscaped: Bool
        /// After the closing quote, or where the failure is.
        let place: Int
        let failure: ScanFailure.Code?
    }

    /// Reads a string both ways, with `after` bytes behind its closing quote.
    ///
    /// - Returns: how they differ, nil when they agree; and whether it is a string.
    private func compare(
        _ scanner: inout JSONScanner, _ text: [UInt8], after: Int
    ) -> (difference: String?, isString: Bool) {
        let block =
            [UInt8.quote] + text + [UInt8.quote] + [UInt8](repeating: 0xFF, count: after) + [UInt8.lineFeed]
        return block.withUnsafeBufferPointer { block in
            guard let base = block.baseAddress else { return ("no block", false) }
            // Reading the last byte, a blank line, tells the scanner where the block begins and ends.
            _ = scanner.scanLine(base, from: block.count - 1, to: block.count)
            func read(_ body: (inout JSONScanner.Pointer, inout Bool, inout JSONScanner) -> Bool) -> Reading {
                var p = base + 1
                var isEscaped = false
                let isString = body(&p, &isEscaped, &scanner)
                return Reading(
                    isString: isString, isEscaped: isString && isEscaped,
                    place: isString ? p - base : scanner.failureOffset,
                    failure: isString ? nil : scanner.failureCode)
            }
            let quick = read { p, isEscaped, scanner in scanner.string(&p, &isEscaped) }
            let careful = read { p, isEscaped, scanner in scanner.carefully(&p, &isEscaped) }
            guard quick == careful else {
                return ("\(text), \(after) after: quickly \(quick), carefully \(careful)", false)
            }
            return (nil, careful.isString)
        }
    }

    @Test("sequences of up to four bytes, valid and invalid, at every kind of position in a block")
    func sequences() {
        var scanner = JSONScanner()
        let edges: [UInt8] = [
            0x1F, 0x22, 0x41, 0x5C, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xED, 0xF0,
            0xF4, 0xFF,
        ]
        let thirds: [UInt8] = [0x22, 0x41, 0x7F, 0x80, 0x8F, 0xBF, 0xC2, 0xF4]
        for place in [0, 13, 14, 15] {
            let before = [UInt8](repeating: UInt8(ascii: "a"), count: place)
            for first in UInt8(0x80)...0xFF {
                for second in edges {
                    for third in thirds {
                        for fourth: UInt8 in [0x41, 0x80, 0xBF] {
                            let text = before + [0xC3, 0xA4, first, second, third, fourth]
                            if let difference = compare(&scanner, text, after: 20).difference {
                                Issue.record("\(difference)")
                                return
                            }
                        }
                    }
                }
            }
        }
    }

    @Test("random texts: scripts, escapes, surrogates, errors, near and far from the end of the block")
    func textsByChance() {
        let seed = Seeds.one(6)
        var random = SplitMix64(seed: seed)
        var scanner = JSONScanner()
        var accepted = 0
        for _ in 0..<60_000 {
            var text: [UInt8] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) { text += piece(&random) }
            let after = Int.random(in: 0...40, using: &random)
            let (difference, isString) = compare(&scanner, text, after: after)
            if let difference {
                Issue.record("\(Seeds.again(seed)): \(difference)")
                return
            }
            if isString { accepted += 1 }
        }
        #expect(accepted > 10_000 && accepted < 58_000)
    }

    private func piece(_ random: inout SplitMix64) -> [UInt8] {
        func below(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
        func run(_ scalars: ClosedRange<UInt32>) -> [UInt8] {
            (0...below(12)).flatMap { _ in
                Unicode.Scalar(UInt32.random(in: scalars, using: &random)).map {
                    Array(String(Character($0)).utf8)
                }
                    ?? []
            }
        }
        func escape(_ unit: UInt32) -> [UInt8] {
            let digits = String(unit, radix: 16, uppercase: below(2) == 0)
            return Array(("\\u" + String(repeating: "0", count: 4 - digits.count) + digits).utf8)
        }
        switch below(30) {
        case 0..<6: return Array("some plain words, ".utf8.prefix(below(18)))
        case 6..<10: return run(0x80...0x7FF)
        case 10..<14: return run(0x800...0xFFFF)
        case 14..<17: return run(0x1_0000...0x10_FFFF)
        case 17..<22: return Array(["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"][below(8)].utf8)
        case 22..<25: return escape(UInt32(below(0xD800)))
        case 25..<28: return escape(0xD800 + UInt32(below(0x400))) + escape(0xDC00 + UInt32(below(0x400)))
        case 28: return escape(0xD800 + UInt32(below(0x800)))
        default: return [UInt8(below(256)), UInt8(below(256))]
        }
    }
}
