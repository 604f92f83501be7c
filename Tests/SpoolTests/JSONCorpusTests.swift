import TestKit
import Testing

@testable import Spool

@Suite("JSON corner cases: splitting a file")
struct JSONCorpusTests {
    /// What strings hold is for the scanner, which judges each object afterwards: half surrogate pairs, what is no UTF-8.
    private func isGrammatical(_ value: JSONCorpus.Case) -> Bool {
        let isHalf = [#""\ud800""#, #""\udc00""#, #""\ud800\u0041""#, #""\ud83d\ud83d""#].contains {
            value.bytes == Array($0.utf8)
        }
        return value.isValid || isHalf || String(validating: value.bytes, as: UTF8.self) == nil
    }

    @Test(
        "an array is split exactly into its objects; invalid JSON is an error, and strings are left to the scanner",
        arguments: JSONCorpus.cases)
    func splitter(value: JSONCorpus.Case) {
        var splitter = ObjectSplitter(longest: 1_000)
        var events: [[UInt8]] = []
        var fault: String?
        let text = Array("[".utf8) + value.object + Array(",{}]".utf8)
        text.withUnsafeBytes { block in
            var used = 0
            while true {
                let find = splitter.next(block, used: &used)
                if case .event = find { events.append(Array(splitter.event.dropLast())) }
                if case .fault(let text) = find { fault = text }
                if find == .more || fault != nil { break }
            }
        }
        let isSplit = fault == nil && splitter.isComplete && events.count == 2
        #expect(isSplit == isGrammatical(value), "\(events.count) events, fault \(fault ?? "none")")
        if isGrammatical(value) { #expect(events.first == value.object) }
    }
}
