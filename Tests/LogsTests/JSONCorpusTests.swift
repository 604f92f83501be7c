import EventLoops
import Foundation
import TestKit
import Testing

@testable import Logs

@Suite("JSON corner cases: log lines")
struct JSONCorpusTests {
    @Test("a JSON line is one object, and its fields keep their meaning")
    func lines() throws {
        for string in JSONCorpus.strings {
            let message = LogMessage(level: .info, text: "corner case", fields: [("value", string)])
            let line = LogFormatter(forJournal: false).line(
                message, at: Timestamp(milliseconds: 0), as: .json)
            let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
            #expect(object?["value"] as? String == string)
        }
    }
}
