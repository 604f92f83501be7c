import EventLoops
import Testing

@testable import Logs

@Suite("Log lines")
struct LogFormatterTests {
    private let time = Timestamp(milliseconds: 1_795_168_800_123)

    private func line(_ message: LogMessage, journal: Bool = true, _ format: LogFormat = .text) -> String {
        String(decoding: LogFormatter(forJournal: journal).line(message, at: time, as: format), as: UTF8.self)
    }

    private let failed = LogMessage(
        level: .error, text: "delivery failed", fields: [("destination", "main"), ("status", "503")])

    @Test("a line has a priority for the journal, else time and level; or it is JSON")
    func forms() {
        #expect(line(failed) == "<3>delivery failed destination=main status=503\n")
        #expect(
            line(failed, journal: false)
                == "2026-11-20T10:00:00.123Z error delivery failed destination=main status=503\n")
        #expect(
            line(failed, journal: false, .json)
                == #"{"time":"2026-11-20T10:00:00.123Z","level":"error","message":"delivery failed","#
                + #""destination":"main","status":"503"}"# + "\n")
    }

    @Test("each level has its systemd priority")
    func priorities() {
        #expect(LogLevel.allCases.map(\.systemdPriority) == [3, 4, 6, 7, 7])
    }

    @Test(
        "a hostile value can neither begin a line nor imitate another field",
        arguments: [
            ("a\n<0>agent destroyed", #""a\n<0>agent destroyed""#), ("x status=200", #""x status=200""#),
            ("a=b", #""a=b""#), ("", #""""#), (#"\" status=1"#, #""\\\" status=1""#),
            ("\u{1B}[2J", "\"\\u001b[2J\""), ("\u{202E}gpj", "\"\\u202egpj\""), ("\u{2028}x", "\"\\u2028x\""),
            ("\u{85}x", "\"\\u0085x\""), ("\u{E0001}", "\"\\udb40\\udc01\""), ("grün", "\"grün\""),
            ("\0", "\"\\u0000\""),
        ])
    func hostileValues(value: String, written: String) {
        let message = LogMessage(level: .info, text: "file found", fields: [("path", value)])
        #expect(line(message) == "<6>file found path=\(written)\n")
        let json = line(message, journal: false, .json)
        #expect(json.utf8.count { $0 == UInt8(ascii: "\n") } == 1)
        #expect(json.hasSuffix(written == value ? "\"path\":\"\(value)\"}\n" : "\"path\":\(written)}\n"))
    }

    @Test("a line is at most about 9 KiB, and says what is missing")
    func longLines() {
        let long = String(repeating: "a", count: 5000)
        let message = LogMessage(level: .info, text: "found", fields: (0..<50).map { ("k\($0)", long) })
        for format in LogFormat.allCases {
            let text = line(message, format)
            #expect(text.utf8.count < 10_000)
            #expect(text.contains("fields_left_out"))
            #expect(text.contains("…"))
        }
    }

    @Test("a field cannot replace time, level or message")
    func reservedKeys() {
        let message = LogMessage(level: .info, text: "found", fields: [("level", "error")])
        #expect(
            line(message, journal: false, .json).contains(
                #""level":"info","message":"found","level_":"error"}"#))
    }
}
