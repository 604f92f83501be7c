import Model
import TestKit
import Testing
import TextFormats

@testable import Events

/// Names found again at their place are not searched for their end: a scanner that remembers must say what a new one says.
@Suite("A scanner reused for many lines")
struct NamePlacesTests {
    /// All that a scanner says of a line.
    private struct Reading: Equatable {
        var next: Int
        var isObject: Bool
        var failure: ScanFailure.Code?
        var place = 0
        var present: UInt64 = 0
        var members: [[Int]] = []
        var replaced = 0
        var propertyCount = 0
        var hasLongText = false
        var mayRepeat = false
    }

    private func read(_ line: [UInt8], _ scanner: inout JSONScanner) -> Reading {
        line.withUnsafeBufferPointer { line in
            guard let base = line.baseAddress else { return Reading(next: 0, isObject: false) }
            let (next, isObject) = scanner.scanLine(base, from: 0, to: line.count)
            var reading = Reading(next: next, isObject: isObject)
            guard isObject else {
                reading.failure = scanner.failureCode
                reading.place = scanner.failureOffset
                return reading
            }
            return found(by: scanner, reading)
        }
    }

    /// A reading with what the scanner has found.
    private func found(by scanner: borrowing JSONScanner, _ reading: Reading) -> Reading {
        var reading = reading
        reading.present = scanner.present
        for name in MemberName.allCases where scanner.has(name) {
            let member = scanner.member(name)
            reading.members.append([member.key, member.value, member.end, member.isEscaped ? 1 : 0])
        }
        reading.replaced = scanner.replaced.count
        reading.propertyCount = scanner.propertyCount
        reading.hasLongText = scanner.hasLongText
        reading.mayRepeat = scanner.mayRepeat
        return reading
    }

    private static let names = [
        "", "a", "b", "ab", "aa", "name", "type", "id", "ip", "properties", "timestamp", "Kategorie", "größe",
        "1234567", "12345678",
        "12345679", "fourteen bytes", "fifteen bytes..", "fifteen bytes.:", "sixteen bytes...",
        "sixteen bytes..:",
        "a name of more than sixteen bytes", "a name of more than sixteen bytez", #"\u0061"#, #"a\"b"#,
    ]

    private func object(_ random: inout SplitMix64, _ names: [String]) -> (text: String, repeats: Bool) {
        let members = names.map {
            "\"\($0)\":\(["1", "\"x\"", "true", "{\"a\":[]}"].randomElement(using: &random) ?? "1")"
        }
        return ("{" + members.joined(separator: ",") + "}", Set(names).count < names.count)
    }

    @Test("a scanner that has read other lines gives the results of a new one, and finds repeated properties")
    func remembersNothingWrong() {
        let seed = Seeds.one(8)
        var random = SplitMix64(seed: seed)
        var scanner = JSONScanner()
        var shapes: [[String]] = []
        for _ in 0..<12 {
            let count = Int.random(in: 0...8, using: &random)
            shapes.append((0..<count).map { _ in NamePlacesTests.names.randomElement(using: &random) ?? "" })
        }
        shapes.append((0..<40).map { "p\($0)" })
        var accepted = 0
        for round in 0..<12_000 {
            if round % 300 == 0 {
                scanner.keyThreshold = Int.random(in: 0...20, using: &random)
                scanner.addressName = Array(["", "ip", "a"].randomElement(using: &random)?.utf8 ?? "".utf8)
            }
            var inner = shapes.randomElement(using: &random) ?? []
            if Int.random(in: 0..<4, using: &random) == 0, !inner.isEmpty {
                inner[Int.random(in: 0..<inner.count, using: &random)] =
                    NamePlacesTests.names.randomElement(using: &random) ?? ""
            }
            let properties = object(&random, inner)
            var text = properties.text
            let isWhole = Bool.random(using: &random)
            if isWhole {
                let event = ["n", "name of it", "another name"].randomElement(using: &random) ?? ""
                text = "{\"name\":\"\(event)\",\"properties\":\(text)}"
            }
            text += String(repeating: " ", count: [0, 1, 12, 40].randomElement(using: &random) ?? 0)
            var line = Array(text.utf8)
            let isMutated = Int.random(in: 0..<4, using: &random) == 0
            if isMutated {
                let index = Int.random(in: 0..<line.count, using: &random)
                line[index] =
                    [UInt8.quote, .backslash, .colon, 0x1F, 0xC3, 0x41].randomElement(using: &random) ?? 0
            }
            line.append(.lineFeed)
            var fresh = JSONScanner()
            fresh.keyThreshold = scanner.keyThreshold
            fresh.addressName = scanner.addressName
            let (remembering, by) = (read(line, &scanner), read(line, &fresh))
            if by.isObject { accepted += 1 }
            guard remembering == by else {
                Issue.record("\(text), \(Seeds.again(seed)): \(remembering), by itself \(by)")
                return
            }
            guard isWhole, !isMutated, by.isObject else { continue }
            // Names with escapes and those beyond the compared ones are left to the exact way.
            let isLeft =
                inner.contains { $0.contains(where: { $0 == "\\" }) } || inner.count > NamePlaces.properties
            guard by.mayRepeat == (properties.repeats || isLeft), by.propertyCount == inner.count else {
                Issue.record("\(text), \(Seeds.again(seed)): mayRepeat \(by.mayRepeat)")
                return
            }
        }
        #expect(accepted > 6_000)
    }

    @Test("a remembered name means the address exactly while it is configured")
    func addressIsKnownAtOnce() {
        var scanner = JSONScanner()
        let line = Array(#"{"ip":"192.0.2.1"}                    "#.utf8) + [UInt8.lineFeed]
        for (address, bit) in [
            ("", 0), ("ip", MemberName.address.bit), ("", 0), ("ip", MemberName.address.bit),
        ] {
            scanner.addressName = Array(address.utf8)
            for _ in 0..<2 { #expect(read(line, &scanner).present == bit) }
        }
    }

    @Test("members that a format notes while it writes them are those that a scan finds")
    func notedMembers() throws {
        let seed = Seeds.one(9)
        var random = SplitMix64(seed: seed)
        var settings = TextFormatSettings()
        settings.parse = "logfmt"
        let plain = try TextFormat(settings)
        settings.keepLine = "type"
        let keeping = try TextFormat(settings)
        var writer = RecordWriter()
        var accepting = JSONScanner()
        accepting.addressName = Array("ip".utf8)
        var noted = 0
        let names =
            NamePlacesTests.names.filter { !$0.isEmpty && !$0.contains(" ") && !$0.contains("\"") }
            + ["fifteen_bytes_x", "sixteen_bytes_xx", "seventeen_bytes_x", String(repeating: "n", count: 70)]
        // Values around the 16 bytes that one load has, and longer than several loads.
        let values =
            ["1", "\"x y\"", "x", "", "\"\"", "é", "\"a value of more than 16 bytes: é\""]
            + [14, 15, 16, 17, 31, 33, 100].flatMap { count in
                let text = String(repeating: "v", count: count)
                return [text, "\"\(text)\""]
            }
        for _ in 0..<6_000 {
            let count = [1, 3, 8, 40].randomElement(using: &random) ?? 1
            let pairs = (0..<count).map { _ in
                "\(names.randomElement(using: &random) ?? "a")="
                    + (values.randomElement(using: &random) ?? "")
            }
            let line = Array(pairs.joined(separator: " ").utf8)
            let block = line + [UInt8](repeating: .lineFeed, count: 32)
            // The original line as a member, withheld or not.
            let format = Bool.random(using: &random) ? plain : keeping
            let keepsLine = Bool.random(using: &random)
            let isParsed = block.withUnsafeBytes { block in
                format.parse(
                    UnsafeRawBufferPointer(rebasing: block[..<line.count]), readable: block.count,
                    keepsLine: keepsLine, into: &writer) == nil
            }
            try #require(isParsed, "\(pairs), \(Seeds.again(seed))")
            guard let members = writer.members, let start = writer.bytes.baseAddress else { continue }
            noted += 1
            let object = try JSONValue(parsing: Array(writer.bytes.dropLast()))
            try #require(object.members?.count == members.count, "\(pairs), \(Seeds.again(seed))")
            accepting.accept(start, writer.bytes.count, RecordWriter.padding, members)
            var scanning = JSONScanner()
            scanning.addressName = Array("ip".utf8)
            let (end, isObject) = scanning.scanLine(
                start, from: 0, to: writer.bytes.count + RecordWriter.padding)
            try #require(isObject && end == writer.bytes.count, "\(pairs), \(Seeds.again(seed))")
            let none = Reading(next: end, isObject: true)
            try #require(
                found(by: accepting, none) == found(by: scanning, none)
                    && accepting.open == scanning.open && accepting.close == scanning.close,
                "\(pairs), \(Seeds.again(seed))")
        }
        #expect(noted > 1_000)
    }
}
