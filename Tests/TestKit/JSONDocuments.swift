/// Random JSON documents, and documents that are nearly JSON: for comparing readers.
public struct JSONDocuments: Sendable {
    private var random: SplitMix64

    /// Documents that repeat for the same seed.
    public init(seed: UInt64) { random = SplitMix64(seed: seed) }

    /// The next document, without a line feed: half of them as they were made, the others with some bytes changed.
    public mutating func next() -> [UInt8] {
        var document: [UInt8] = []
        if chance(20) { space(&document) }
        object(&document, depth: 1)
        if chance(20) { space(&document) }
        if chance(2) { mutate(&document) }
        document.removeAll { $0 == 0x0A }
        return document
    }

    // MARK: Comparing

    /// The document with each number outside strings replaced by 0: readers differ in which numbers they hold.
    public static func withoutNumbers(_ document: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var inString = false
        var isEscaped = false
        var inNumber = false
        for c in document {
            if !inString, "0123456789+-.eE".utf8.contains(c), inNumber || "-0123456789".utf8.contains(c) {
                if !inNumber { result.append(0x30) }
                inNumber = true
                continue
            }
            inNumber = false
            if inString {
                if isEscaped {
                    isEscaped = false
                } else if c == 0x5C {
                    isEscaped = true
                } else if c == 0x22 {
                    inString = false
                }
            } else if c == 0x22 {
                inString = true
            }
            result.append(c)
        }
        return result
    }

    // MARK: Making

    private mutating func object(_ out: inout [UInt8], depth: Int) {
        out.append(UInt8(ascii: "{"))
        for index in 0..<below(depth == 1 ? 8 : 4) {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            blank(&out)
            string(&out, isKey: true)
            blank(&out)
            out.append(UInt8(ascii: ":"))
            blank(&out)
            value(&out, depth: depth + 1)
            blank(&out)
        }
        out.append(UInt8(ascii: "}"))
    }

    private mutating func array(_ out: inout [UInt8], depth: Int) {
        out.append(UInt8(ascii: "["))
        for index in 0..<below(4) {
            if index > 0 { out.append(UInt8(ascii: ",")) }
            blank(&out)
            value(&out, depth: depth + 1)
        }
        blank(&out)
        out.append(UInt8(ascii: "]"))
    }

    private mutating func value(_ out: inout [UInt8], depth: Int) {
        switch below(depth > 6 ? 8 : 10) {
        case 0: out += Array("null".utf8)
        case 1: out += Array((chance(2) ? "true" : "false").utf8)
        case 2, 3, 4: number(&out)
        case 5, 6, 7: string(&out, isKey: false)
        case 8: object(&out, depth: depth)
        default: array(&out, depth: depth)
        }
    }

    private mutating func number(_ out: inout [UInt8]) {
        if chance(3) { out.append(UInt8(ascii: "-")) }
        if chance(4) {
            out.append(UInt8(ascii: "0"))
        } else {
            out.append(UInt8(ascii: "1") + UInt8(below(9)))
            for _ in 0..<below(chance(10) ? 25 : 5) { out.append(digit()) }
        }
        if chance(3) {
            out.append(UInt8(ascii: "."))
            for _ in 0...below(5) { out.append(digit()) }
        }
        if chance(5) {
            out.append(chance(2) ? UInt8(ascii: "e") : UInt8(ascii: "E"))
            if chance(2) { out.append(chance(2) ? UInt8(ascii: "+") : UInt8(ascii: "-")) }
            for _ in 0...below(chance(10) ? 4 : 2) { out.append(digit()) }
        }
    }

    private mutating func string(_ out: inout [UInt8], isKey: Bool) {
        out.append(UInt8(ascii: "\""))
        if isKey, chance(2) {
            let known = ["name", "timestamp", "properties", "type", "id", "priority", "session_id", "pid"]
            out += Array(known[below(known.count)].utf8)
        } else {
            for _ in 0..<below(chance(5) ? 40 : 10) { character(&out) }
        }
        out.append(UInt8(ascii: "\""))
    }

    private mutating func character(_ out: inout [UInt8]) {
        switch below(14) {
        case 0: out += Array(["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"][below(8)].utf8)
        case 1: escape(&out, UInt32(below(0xD800)))
        case 2:
            let scalar = UInt32(below(0x10_0000))
            escape(&out, 0xD800 + scalar >> 10)
            escape(&out, 0xDC00 + scalar & 0x3FF)
        case 3, 4:
            let limit = [0x80, 0x800, 0x10000, 0x110000][below(4)]
            if let scalar = Unicode.Scalar(UInt32(below(limit))), scalar.value >= 0x20, scalar != "\"",
                scalar != "\\"
            {
                out += Array(String(Character(scalar)).utf8)
            }
        default: out.append(UInt8(ascii: "a") + UInt8(below(26)))
        }
    }

    private mutating func escape(_ out: inout [UInt8], _ unit: UInt32) {
        let text = String(unit, radix: 16, uppercase: chance(2))
        out += Array(("\\u" + String(repeating: "0", count: 4 - text.count) + text).utf8)
    }

    private mutating func blank(_ out: inout [UInt8]) {
        if chance(8) { space(&out) }
    }

    private mutating func space(_ out: inout [UInt8]) {
        for _ in 0...below(3) { out.append([0x20, 0x20, 0x09, 0x0D][below(4)]) }
    }

    // MARK: Spoiling

    private mutating func mutate(_ document: inout [UInt8]) {
        for _ in 0...below(3) {
            guard !document.isEmpty else { return }
            let place = below(document.count)
            switch below(8) {
            case 0: document.remove(at: place)
            case 1: document.insert(UInt8(below(256)), at: place)
            case 2: document[place] = UInt8(below(256))
            case 3: document.removeLast(document.count - place)
            case 4:
                let marks = Array("{}[],:\"\\0123456789.eE+-tfn \t\r/u".utf8)
                document.insert(marks[below(marks.count)], at: place)
            case 5: document.swapAt(place, below(document.count))
            case 6:
                document.insert(
                    contentsOf: document[place..<min(place + below(6), document.count)], at: place)
            default:
                let bad: [[UInt8]] = [
                    [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xEF, 0xBB, 0xBF], [0x00],
                    Array("\\ud800".utf8), Array("\\udc00".utf8), Array("01".utf8), Array("NaN".utf8),
                    [0xE2, 0x82],
                ]
                document.insert(contentsOf: bad[below(bad.count)], at: place)
            }
        }
    }

    // MARK: Chance

    private mutating func below(_ limit: Int) -> Int { Int.random(in: 0..<max(1, limit), using: &random) }
    private mutating func chance(_ one: Int) -> Bool { below(one) == 0 }
    private mutating func digit() -> UInt8 { UInt8(ascii: "0") + UInt8(below(10)) }
}
