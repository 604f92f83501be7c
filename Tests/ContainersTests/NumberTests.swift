import Model
import TestKit
import Testing

@testable import Containers

/// Numbers that conditions compare, read in a short way and in the long one.
struct NumberTests {
    @Test("tm12: the short way of reading a number agrees with the long one, bit by bit, for texts by chance")
    func agrees() {
        let seed = Seeds.one(3)
        var random = SplitMix64(seed: seed)
        var numbers = 0
        for _ in 0..<50_000 {
            let text = text(&random)
            let number = Array(text.utf8).withUnsafeBufferPointer { Number($0) }
            let first = text.utf8.first ?? 0
            let isCandidate = first == UInt8(ascii: "-") || (0x30...0x39).contains(first)
            switch isCandidate && text.utf8.count <= 64 ? try? JSONValue(parsing: text) : nil {
            case .integer(let expected)?:
                guard case .integer(let read)? = number, read == expected else {
                    Issue.record("\(text) is not \(expected); \(Seeds.again(seed))")
                    continue
                }
                numbers += 1
            case .double(let expected)?:
                guard case .double(let read)? = number, read.bitPattern == expected.bitPattern else {
                    Issue.record("\(text) is not \(expected); \(Seeds.again(seed))")
                    continue
                }
                numbers += 1
            default: #expect(number == nil, "\(text) is a number; \(Seeds.again(seed))")
            }
        }
        #expect(numbers > 10_000, "\(Seeds.again(seed))")
    }

    private func text(_ random: inout SplitMix64) -> String {
        func digits(_ most: Int) -> String {
            (0..<Int.random(in: 0...most, using: &random)).map { _ in "\(Int.random(in: 0...9, using: &random))" }
                .joined()
        }
        switch Int.random(in: 0..<6, using: &random) {
        case 0: return digits(20)
        case 1: return "-" + digits(19)
        case 2: return digits(9) + "." + digits(9)
        case 3: return "-" + digits(16) + "." + digits(17)
        case 4: return digits(3) + "e" + digits(2)
        default:
            let parts = ["0", "-", ".", "1", "9", "e", " ", "+", "00", "x"]
            return (0..<Int.random(in: 0...6, using: &random)).map { _ in
                parts[Int.random(in: 0..<parts.count, using: &random)]
            }.joined()
        }
    }
}
