internal import EventLoops
internal import Model

/// Keeps the spelling of numbers while an event is a `JSONValue`. Its doubles have 17 significant digits, so
/// 18446744073709551615 would be printed as 1.8446744073709552e+19.
///
/// Numbers that are not integers of 64 bits travel as strings that begin with a mark; `text` removes the mark
/// and the quotation marks.
struct ExactNumbers {
    /// Precedes each number that is stored as a string. Random, so that no event can contain it.
    private let mark: String

    init() {
        var random = KernelRandom()
        mark = "\(UInt64.random(in: .min ... .max, using: &random)) "
    }

    /// The value of a JSON text; null if the text is not JSON.
    func value(of text: String) -> JSONValue {
        let bytes = Array(text.utf8)
        var numbers: [Range<Int>] = []
        guard
            (try? JSONValue(parsing: bytes) { spelling, value in
                if case .double = value {
                    numbers.append(spelling.startIndex..<spelling.endIndex)
                }
            }) != nil
        else { return .null }
        var marked: [UInt8] = []
        var done = 0
        for range in numbers {
            marked +=
                bytes[done..<range.lowerBound] + Array("\"\(mark)".utf8) + bytes[range] + [UInt8(ascii: "\"")]
            done = range.upperBound
        }
        return (try? JSONValue(parsing: marked + bytes[done...])) ?? .null
    }

    /// The JSON text of a value that `value(of:)` made, with its numbers as they were written.
    func text(_ value: JSONValue) -> String {
        let mark = Array("\"\(mark)".utf8)
        let bytes = Array(value.pretty.utf8)
        var text: [UInt8] = []
        var offset = 0
        while offset < bytes.count {
            guard bytes[offset] == UInt8(ascii: "\""), bytes[offset...].starts(with: mark) else {
                text.append(bytes[offset])
                offset += 1
                continue
            }
            let number = bytes[(offset + mark.count)...].prefix { $0 != UInt8(ascii: "\"") }
            text += number
            offset = number.endIndex + 1
        }
        return String(decoding: text, as: UTF8.self)
    }
}
