import EventLoops
import Model
import Testing

@testable import Outputs

@Suite("Answers")
struct AnswerTests {
    private let header = Sample.batch([]).header
    private let now = Timestamp(milliseconds: 1_795_168_800_000)

    private func outcome(
        _ answer: HTTPAnswer, overrides: [String: AnswerMeaning] = [:]
    ) -> Outcome {
        AnswerReader(table: AnswerTable(overrides), encoder: NDJSONEncoder())
            .outcome(of: answer, for: header, wireBytes: 1234, now: now) { () throws(OutputError) in [] }
    }

    @Test(
        "a web page is no acknowledgement: it holds the batch and is described; a setting for the status wins"
    )
    func webPages() {
        for page in [
            "<!DOCTYPE html><html>", "\n <HTML lang=en>", "\u{FEFF}<html>", "<head><title>Sign in</title>",
            "<script>",
        ] {
            guard case .held(let failure) = outcome(HTTPAnswer(status: 200, body: Array(page.utf8))) else {
                Issue.record("\(page) is taken for an acknowledgement")
                continue
            }
            #expect(failure.message.hasPrefix("this is a web page"))
            #expect(
                outcome(HTTPAnswer(status: 200, body: Array(page.utf8)), overrides: ["200": .acknowledge])
                    == .acknowledged)
        }
        for body in ["", "ok", "{}", "<ok/>", "<?xml version=\"1.0\"?><response/>", "a < b"] {
            #expect(outcome(HTTPAnswer(status: 200, body: Array(body.utf8))) == .acknowledged, "\(body)")
        }
    }

    @Test("ac18: every status from 200 to 999 means what the table says")
    func fault13_tableIsKept() {
        for status in 200...999 {
            let expected: AnswerMeaning =
                switch status {
                case 200...299: .acknowledge
                case 408, 409, 421, 425, 429: .retry
                case 413: .split
                case 400, 422: .bisect
                case 501, 505: .hold
                case 500...599: .retry
                default: .hold
                }
            #expect(AnswerTable().meaning(of: status) == expected)
            switch (outcome(HTTPAnswer(status: status)), expected) {
            case (.acknowledged, .acknowledge), (.held, .hold), (.retry, .retry), (.rejected, .bisect): break
            case (.tooLarge(wireBytes: 1234, _), .split): break
            case (let other, _): Issue.record("\(status) became \(other)")
            }
        }
    }

    @Test("the destination's settings override the table")
    func overridesWin() {
        let overrides: [String: AnswerMeaning] = [
            "409": .acknowledge, "404": .retry, "500": .bisect, "204": .hold,
        ]
        #expect(outcome(HTTPAnswer(status: 409), overrides: overrides) == .acknowledged)
        guard case .retry = outcome(HTTPAnswer(status: 404), overrides: overrides),
            case .rejected = outcome(HTTPAnswer(status: 500), overrides: overrides),
            case .held = outcome(HTTPAnswer(status: 204), overrides: overrides)
        else {
            Issue.record("an override was not kept")
            return
        }
    }

    @Test("a class of statuses can be overridden, except for statuses with their own meaning")
    func classOverrides() {
        let table = AnswerTable(["404": .retry, "4xx": .hold, "2xx": .bisect])
        #expect(
            table.meaning(of: 400) == .hold && table.meaning(of: 404) == .retry
                && table.meaning(of: 204) == .bisect)
        #expect(table.meaning(of: 500) == .retry)
    }

    @Test(
        "Retry-After is read in both forms and limited to between a second and an hour",
        arguments: [
            ("120", .seconds(120)), (" 7 ", .seconds(7)), ("0", .seconds(1)), ("3601", .seconds(3600)),
            ("99999999999999999999999", .seconds(3600)), ("Fri, 20 Nov 2026 10:02:00 GMT", .seconds(120)),
            ("Friday, 20-Nov-26 10:02:00 GMT", .seconds(120)), ("Fri Nov 20 10:02:00 2026", .seconds(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", .seconds(1)), ("Tue, 20 Nov 2029 10:02:00 GMT", .seconds(3600)),
            ("", nil), ("soon", nil), ("-5", nil), ("1.5", nil), ("Fri, 20 Nov 2026 25:02:00 GMT", nil),
            ("Fri, 20 Foo 2026 10:02:00 GMT", nil), ("5 6", nil),
        ] as [(String, Duration?)])
    func fault13_retryAfterIsObeyed(text: String, expected: Duration?) {
        #expect(RetryAfter.wait(retryAfter: text, milliseconds: nil, date: nil, now: now) == expected)
        let outcome = outcome(HTTPAnswer(status: 503, retryAfter: text))
        switch (outcome, expected) {
        case (.retryAfter(let wait, let failure), let expected?):
            #expect(wait == expected && failure.status == 503)
        case (.retry, nil): break
        default: Issue.record("\(text) became \(outcome)")
        }
    }

    @Test("a date in Retry-After is measured by the answer's own clock; milliseconds take precedence")
    func retryAfterDetails() {
        let date = "Fri, 20 Nov 2026 12:00:00 GMT"
        let later = "Fri, 20 Nov 2026 12:01:00 GMT"
        #expect(RetryAfter.wait(retryAfter: later, milliseconds: nil, date: date, now: now) == .seconds(60))
        #expect(
            RetryAfter.wait(retryAfter: "5", milliseconds: "1500", date: nil, now: now) == .milliseconds(1500)
        )
        #expect(RetryAfter.wait(retryAfter: nil, milliseconds: "10", date: nil, now: now) == .seconds(1))
        #expect(RetryAfter.wait(retryAfter: "5", milliseconds: "x", date: nil, now: now) == .seconds(5))
    }

    @Test("only retries carry a time; a hold does not")
    func holdsIgnoreRetryAfter() {
        guard case .held = outcome(HTTPAnswer(status: 403, retryAfter: "5")) else {
            Issue.record("403 was not held")
            return
        }
    }

    @Test("an excerpt is at most 1 KiB of harmless text")
    func excerptsAreBounded() {
        #expect(AnswerReader.excerpt(Array("a\u{1B}[31mb\r\n\u{7F}c".utf8)) == "a [31mb   c")
        let long = AnswerReader.excerpt(Array(String(repeating: "é", count: 5000).utf8))
        #expect(long.utf8.count == 1024 && long.allSatisfy { $0 == "é" })
        #expect(AnswerReader.excerpt([0xFF, 0xFE]).utf8.count == 6)
        #expect(AnswerReader.excerpt([]).isEmpty)
    }
}
