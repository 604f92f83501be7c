import EventLoops
@testable import Events
import Foundation
import TestKit
import Testing

@Suite("Agreement with another reader")
struct AgreementTests {
    /// How many documents: 40,000, or what `SPOOLSHIP_DOCUMENTS` says.
    static let documents =
        ProcessInfo.processInfo.environment["SPOOLSHIP_DOCUMENTS"].flatMap { Int($0) } ?? 40_000

    private func foundation(_ document: [UInt8]) -> Bool {
        (try? JSONSerialization.jsonObject(with: Data(document))) is [String: Any]
    }

    /// Whether an array or object ends at this byte, with nothing but white space between it and a comma.
    private func isCommaBeforeEnd(_ document: [UInt8], _ byte: Int) -> Bool {
        byte < document.count && "]}".utf8.contains(document[byte])
            && document[..<byte].last { !" \t\r".utf8.contains($0) } == UInt8(ascii: ",")
    }

    @Test(
        "random documents are accepted and refused as by Foundation's JSONSerialization, with known exceptions"
    )
    func foundationAgrees() {
        var documents = JSONDocuments(seed: UInt64(AgreementTests.documents))
        var accepted = 0
        var explained: [String: Int] = [:]
        for index in 0..<AgreementTests.documents {
            let document = documents.next()
            let failure = failure(document)
            if failure == nil { accepted += 1 }
            guard (failure == nil) != foundation(document) else { continue }
            if failure == nil, foundation(JSONDocuments.withoutNumbers(document)) {
                // RFC 8259 sets no limit to numbers; Foundation refuses what no Double holds.
                explained["a number beyond what Foundation holds", default: 0] += 1
            } else if failure?.code == .byteOrderMark || document.contains(0) {
                // Foundation guesses encodings: by a byte-order mark, and by where zeros stand. Ours is UTF-8.
                explained["an encoding guessed", default: 0] += 1
            } else if let failure, isCommaBeforeEnd(document, failure.byte) {
                // RFC 8259 has no comma after the last element or member; Foundation lets it pass.
                explained["a comma before a closing bracket", default: 0] += 1
            } else {
                let text = String(decoding: document, as: UTF8.self).debugDescription
                Issue.record("document \(index): we say \(failure?.message ?? "it is an object"); \(text)")
                return
            }
        }
        #expect(accepted > AgreementTests.documents / 2 && accepted < AgreementTests.documents)
        print(
            "agreement with Foundation: \(AgreementTests.documents) documents, \(accepted) accepted, \(explained)"
        )
    }

    @Test("without additions the output equals the input, byte for byte")
    func outputIsInputPlusAdditions() throws {
        var options = EventOptions()
        options.defaults.limits = EventLimits()
        options.defaults.defaultEventName = "default"
        options.defaults.repairsUTF8 = false
        options.maxAge = nil
        var reading = Reading(options)
        var documents = JSONDocuments(seed: 77)
        var compared = 0
        for index in 0..<20_000 {
            let document = documents.next()
            let (verdict, output) = reading.read(bytes: document + [0x0A], isSynchronised: false)
            guard verdict.kind == .accepted, let output else { continue }
            // The line is one line of JSON again, whatever was changed.
            #expect(output.last == 0x0A && failure(Array(output.dropLast())) == nil)
            guard reading.pass.output.draft.edits.isEmpty, !reading.pass.lines.scanner.hasLineBreaks else {
                continue
            }
            compared += 1
            let trimmed = document.filter { _ in true }[...]
            let open = try #require(trimmed.firstIndex(of: UInt8(ascii: "{")))
            let close = try #require(trimmed.lastIndex(of: UInt8(ascii: "}")))
            var expected = trimmed[open..<close]
            if !reading.pass.output.draft.front.isEmpty {
                while expected.last == 0x20 || expected.last == 0x09 { expected.removeLast() }
            }
            guard output.starts(with: expected) else {
                Issue.record(
                    "document \(index): \(String(decoding: document, as: UTF8.self).debugDescription)")
                return
            }
            let added = String(decoding: output[expected.count...], as: UTF8.self)
            #expect(added.hasPrefix(",\"") || expected == [UInt8(ascii: "{")], "\(added)")
            #expect(output.count - document.count <= reading.pass.maxAddition)
        }
        #expect(compared > 3000)
    }
}
