import TestKit
import Testing

@testable import Logs

@Suite("Log")
struct LogTests {
    @Test("only messages of the level are written, and fields of others are not even computed")
    func levelsFilter() {
        let sink = KeptLog(level: .warning)
        let log = Log(sink)
        func costly() -> KeyValuePairs<String, any CustomStringConvertible> {
            Issue.record("fields were made for a message that is not written")
            return [:]
        }
        log.error("delivery failed", ["destination": "main", "status": 503])
        log.warning("queue near its cap")
        log.info("started")
        log.debug("batch formed", costly())
        #expect(
            sink.messages == [
                LogMessage(
                    level: .error, text: "delivery failed",
                    fields: [("destination", "main"), ("status", "503")]),
                LogMessage(level: .warning, text: "queue near its cap", fields: []),
            ])
    }
}
