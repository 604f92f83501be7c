import Testing

@testable import Events

@Suite("Known names, and names of the day")
struct NameTests {
    private func present(_ name: [UInt8], after: Int) -> UInt64 {
        let line =
            Array("{\"".utf8) + name + Array("\":1".utf8) + [UInt8](repeating: .blank, count: after)
            + Array("}\n".utf8)
        var scanner = JSONScanner()
        return line.withUnsafeBufferPointer { line in
            guard let base = line.baseAddress, scanner.scanLine(base, from: 0, to: line.count).isObject else {
                return .max
            }
            return scanner.present
        }
    }

    @Test(
        "each name that the agent reads is recognised anywhere, and not with a byte changed, missing or added"
    )
    func knownNames() {
        let names = MemberName.allCases.filter { !$0.spelling.isEmpty }
        let spellings = Set(names.map(\.spelling))
        for name in names {
            for after in [0, 2, 8, 40] {
                #expect(present(name.spelling, after: after) == name.bit)
                for index in name.spelling.indices {
                    for change: UInt8 in [1, 0x20] {
                        var other = name.spelling
                        other[index] ^= change
                        if !spellings.contains(other) { #expect(present(other, after: after) == 0) }
                    }
                    var shorter = name.spelling
                    shorter.remove(at: index)
                    if !spellings.contains(shorter) { #expect(present(shorter, after: after) == 0) }
                    var longer = name.spelling
                    longer.insert(UInt8(ascii: "x"), at: index)
                    #expect(present(longer, after: after) == 0)
                }
                #expect(present(name.spelling + Array("x".utf8), after: after) == 0)
            }
        }
    }

    @Test("names of every length that differ in one byte are counted separately, and found again")
    func distinctNames() {
        var names = DistinctNames(seed: 7)
        var texts: [[UInt8]] = []
        for length in 1...40 {
            let text = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
            texts.append(text)
            for index in text.indices {
                var other = text
                other[index] = UInt8(ascii: "_")
                texts.append(other)
            }
        }
        for limit in [Int.max, 0] {
            for text in texts {
                let isAdmitted = text.withUnsafeBufferPointer { names.admit($0, limit: limit) }
                #expect(isAdmitted)
            }
            #expect(names.count == texts.count)
        }
    }

    @Test("the names of a day survive a restart; truncated memory gives its whole names")
    func savedNames() {
        var names = DistinctNames(seed: 7)
        let none = names.saved()
        #expect(none == nil)
        names.beginDay(20_777)
        let texts = ["a", "checkout", "a longer name of an event"].map { Array($0.utf8) }
        for text in texts { _ = text.withUnsafeBufferPointer { names.admit($0, limit: 3) } }
        let saved = names.saved() ?? []
        #expect(!saved.isEmpty)
        for length in 0...saved.count {
            var restored = DistinctNames(seed: 8)
            restored.restore(Array(saved.prefix(length)))
            let (day, count, isChanged) = (restored.day, restored.count, restored.isChanged)
            #expect(day == (length < 8 ? .min : 20_777) && !isChanged)
            var known = 0
            for text in texts where text.withUnsafeBufferPointer({ restored.admit($0, limit: 0) }) {
                known += 1
            }
            #expect(known == count && (length < saved.count || known == 3))
        }
    }

    @Test("of all pairs of bytes exactly the assigned countries are valid")
    func countries() {
        var found = 0
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                guard let country = CountryCode(first, second) else { continue }
                found += 1
                let isLetters = (0x41...0x5A).contains(first & 0xDF) && (0x41...0x5A).contains(second & 0xDF)
                #expect(isLetters && CountryCode(country.description) == country)
            }
        }
        // Each in capitals, small letters, and both mixtures.
        #expect(found == 249 * 4)
    }

    @Test("properties with a common beginning, or of eight bytes and more, are distinguished")
    func repeatedProperties() {
        for length in 0...20 {
            let name = String(repeating: "n", count: length)
            for (other, isEqual) in [(name, true), (name + "n", false), (name + "m", false)] {
                for after in [0, 40] {
                    let line = Array(
                        (#"{"properties":{"\#(name)":1,"\#(other)":2}"# + String(repeating: " ", count: after)
                            + "}\n")
                            .utf8)
                    var scanner = JSONScanner()
                    line.withUnsafeBufferPointer { line in
                        guard let base = line.baseAddress else { return }
                        #expect(scanner.scanLine(base, from: 0, to: line.count).isObject)
                    }
                    #expect(scanner.mayRepeat == isEqual, "\(name) and \(other), \(after) blanks after")
                }
            }
        }
    }
}
