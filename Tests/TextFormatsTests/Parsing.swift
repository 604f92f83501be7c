import EventLoops
import Foundation
import Model
import TestKit
import Testing
import TimeZones

@testable import TextFormats

/// The time of day of these tests: times without a year are of late November 2026.
let testNow = Timestamp(seconds: 1_795_910_400, nanoseconds: 0)

func format(
    _ parse: String? = nil, pattern: String? = nil, firstLine: String? = nil, columns: [String] = [],
    numbers: [String] = [], keepLine: String? = nil
) throws -> TextFormat {
    var settings = TextFormatSettings()
    settings.parse = parse
    settings.pattern = pattern
    settings.firstLine = firstLine
    settings.columns = columns
    settings.numbers = numbers
    settings.keepLine = keepLine
    return try TextFormat(settings)
}

/// The object that a record becomes, or where reading it stopped. It is read twice, and must be read alike.
func parsed(_ format: TextFormat, _ record: some Collection<UInt8>) throws -> Result<JSONValue, ParseFailure>
{
    // With bytes behind it, as in a block: they must not matter.
    let read = written(format, Array(record), tail: Array("\"tail\\ \u{1} of the next line\n".utf8))
    let last = written(format, Array(record), tail: [])
    #expect(last == read, "the last record of a block, which is read in the general way")
    guard case .success(let bytes) = read else { return .failure(try #require(read.failure)) }
    #expect(bytes.last == 0x0A)
    return .success(try JSONValue(parsing: Array(bytes.dropLast())))
}

/// The bytes that a record becomes, in memory that ends with the tail.
func written(_ format: TextFormat, _ record: [UInt8], tail: [UInt8]) -> Result<[UInt8], ParseFailure> {
    var writer = RecordWriter()
    writer.now = testNow
    let block = record + tail
    let failure = block.withUnsafeBytes { bytes in
        format.parse(
            UnsafeRawBufferPointer(rebasing: bytes[..<record.count]), readable: bytes.count, into: &writer)
    }
    return failure.map { .failure(ParseFailure(failure: $0)) } ?? .success(Array(writer.bytes))
}

extension Result {
    /// The error, or nil.
    var failure: Failure? {
        if case .failure(let error) = self { return error }
        return nil
    }
}

/// A failure as an error of `Result`.
struct ParseFailure: Error, Equatable {
    let failure: TextFailure
}

func object(_ format: TextFormat, _ record: String) throws -> [String: JSONValue] {
    members(try parsed(format, Array(record.utf8)).get())
}

func failure(_ format: TextFormat, _ record: String) throws -> TextFailure? {
    if case .failure(let error) = try parsed(format, Array(record.utf8)) { return error.failure }
    return nil
}

func members(_ value: JSONValue?) -> [String: JSONValue] {
    guard case .object(let members)? = value else { return [:] }
    return Dictionary(members.map { ($0.key, $0.value) }) { _, last in last }
}

/// The records of a text, each with its first and last line from 1, as a reader and the pass put them together.
func records(_ text: [UInt8], _ format: TextFormat) -> [(lines: ClosedRange<Int>, bytes: [UInt8])] {
    var result: [(lines: ClosedRange<Int>, bytes: [UInt8])] = []
    var previous: [UInt8] = []
    for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).dropLast().enumerated()
    {
        let begins =
            !format.joinsLines
            || Array(line).withUnsafeBytes { line in
                previous.withUnsafeBytes { format.begins(line, after: $0) }
            }
        if begins || result.isEmpty {
            result.append((index + 1...index + 1, Array(line)))
        } else {
            let last = result.removeLast()
            result.append((last.lines.lowerBound...index + 1, last.bytes + [0x0A] + line))
        }
        previous = Array(line)
    }
    return result
}

/// The corpus: lines as programs write them, and the records that they are.
enum Fixture {
    static func bytes(_ name: String) throws -> [UInt8] {
        let path = "\(GoldenFile.root)/Tests/TextFormatsTests/Fixtures/\(name)"
        return Array(try String(contentsOfFile: path, encoding: .utf8).utf8)
    }
}
