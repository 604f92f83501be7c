import EventLoops
import Model
import Testing

@testable import Outputs

@Suite("The meaning of a NATS server's answers")
struct NATSAnswerTests {
    private func meaning(_ payload: String, headers: String = "") -> (String, Failure?) {
        let outcome = NATSAnswer.outcome(
            headers: Array(headers.utf8), payload: Array(payload.utf8), wireBytes: 7, subject: "events.web")
        return switch outcome {
        case .acknowledged: ("good", nil)
        case .retry(let failure): ("retry", failure)
        case .held(let failure): ("hold", failure)
        case .tooLarge(7, let failure): ("split", failure)
        default: ("\(outcome)", nil)
        }
    }

    @Test("an acknowledgement needs a stream and a sequence; a duplicate is one too")
    func acknowledgements() {
        #expect(meaning(#"{"stream":"EVENTS","seq":1}"#).0 == "good")
        #expect(meaning(#"{"stream":"EVENTS","seq":1,"duplicate":true,"domain":"hub"}"#).0 == "good")
        for bad in [
            "", "x", "{}", "[]", #"{"stream":"EVENTS"}"#, #"{"stream":"EVENTS","seq":0}"#, #"{"seq":5}"#,
            #"{"stream":7,"seq":5}"#, "+ACK", #"{"stream":"EVENTS","seq":-1}"#,
        ] { #expect(meaning(bad).0 == "retry", "\(bad)") }
    }

    @Test(
        "every relevant error has a row, none makes dead letters, and only known texts appear in messages",
        arguments: [
            (503, 10077, "maximum messages exceeded", "retry"),
            (503, 10077, "maximum bytes exceeded", "retry"),
            (503, 10077, "Unheard", "retry"), (400, 10054, "message size exceeds maximum allowed", "split"),
            (400, 10060, "expected stream does not match", "hold"),
            (400, 10109, "invalid operation on sealed stream", "hold"),
            (503, 10039, "JetStream not enabled for account", "hold"),
            (503, 10076, "JetStream not enabled", "retry"),
            (400, 10002, "resource limits exceeded for account", "retry"),
            (503, 10023, "insufficient resources", "retry"),
            (500, 10047, "insufficient storage resources available", "retry"),
            (503, 10008, "JetStream system temporarily unavailable", "retry"),
            (500, 10009, "JetStream cluster can not handle request", "retry"),
            (404, 10059, "stream not found", "retry"),
            (409, 10158, "Unheard", "retry"), (429, 10167, "too many requests", "retry"),
            (429, 1, "Unheard", "retry"),
            (400, 99999, "Unheard", "hold"), (500, 99999, "Unheard", "retry"),
        ])
    func table(status: Int, code: Int, description: String, expected: String) {
        let found = meaning(
            "{\"error\":{\"code\":\(status),\"err_code\":\(code),\"description\":\"\(description)\"},\"stream\":\"EVENTS\",\"seq\":0}"
        )
        #expect(found.0 == expected)
        #expect(found.1?.message.contains("answered \(status) \(code)") == true)
        #expect(
            found.1?.message.contains("Unheard") == false && found.1?.excerpt.contains(description) == true)
        if code == 10077, description != "Unheard" { #expect(found.1?.message.contains(description) == true) }
    }

    @Test("no responders, and other statuses in headers, are retried")
    func statuses() {
        let found = meaning("", headers: "NATS/1.0 503\r\n\r\n")
        #expect(found.0 == "retry" && found.1?.message.contains("no stream takes events.web") == true)
        #expect(meaning("", headers: "NATS/1.0 408 Request Timeout\r\n\r\n").1?.message == "answered 408")
        #expect(meaning(#"{"stream":"EVENTS","seq":1}"#, headers: "NATS/1.0\r\nX: 503\r\n\r\n").0 == "good")
        for bad in ["NATS/1.0 5", "NATS/1.0 99999", "HTTP/1.1 503", "NATS/1.0 x"] {
            #expect(NATSAnswer.status(in: Array(bad.utf8)) == nil)
        }
    }

    @Test("an error without its numbers is retried, or held if it blames the client")
    func oddErrors() {
        #expect(meaning(#"{"error":{}}"#).0 == "retry")
        #expect(meaning(#"{"error":{"code":400}}"#).0 == "hold")
        #expect(meaning(#"{"error":{"code":99999999999999999999}}"#).0 == "retry")
        #expect(meaning(#"{"error":"x","stream":"A","seq":1}"#).0 == "retry")
        #expect(meaning(#"{"error":null,"stream":"A","seq":1}"#).0 == "good")
    }

    @Test(
        "server errors that need a person hold the destination, others are retried; unknown text is not shown",
        arguments: [
            ("Authorization Violation", true), ("User Authentication Expired", true),
            ("User Authentication Revoked", true),
            ("Account Authentication Expired", true), ("Authentication Timeout", false),
            ("Permissions Violation for Publish to \"events.web\"", true),
            ("Permissions Violation for Subscription to \"_INBOX.a.*\"", true),
            ("maximum connections exceeded", false),
            ("Secure Connection - TLS Required", true), ("Stale Connection", false), ("Slow Consumer", false),
            ("Maximum Payload Violation", false), ("Server Shutdown", false),
            ("Unknown Protocol Operation", true),
            ("Something \u{1B}[31m new", false), ("", false),
        ])
    func complaints(text: String, isHeld: Bool) {
        let complaint = NATSComplaint(text, host: "a")
        switch complaint.outcome {
        case .held(let failure), .retry(let failure):
            #expect(!failure.message.contains("\u{1B}") && failure.message.hasPrefix("a: "))
        default: Issue.record("\(complaint)")
        }
        if case .held = complaint.outcome { #expect(isHeld) } else { #expect(!isHeld) }
        #expect(complaint.isAboutPublishing == text.contains("for Publish"))
    }

    @Test("of several servers, only a hold by all holds the destination")
    func combined() {
        let held = Outcome.held(Failure(kind: .status, message: "h"))
        let retry = Outcome.retry(Failure(kind: .connect, message: "r"))
        #expect(NATSClient.combined([held, held]) == held)
        #expect(NATSClient.combined([retry, held]) == .retry(Failure(kind: .status, message: "h")))
        #expect(NATSClient.combined([.offline, retry]) == retry)
        #expect(NATSClient.combined([.offline, .offline]) == .offline)
        #expect(NATSClient.combined([]) == nil)
    }

    @Test(
        "events of a partly stored batch are sent again; if none is stored, the batch has the common outcome")
    func parts() {
        let retry = Outcome.retry(Failure(kind: .connect, message: "r"))
        let large = Outcome.tooLarge(wireBytes: 9, Failure(kind: .status, message: "l"))
        func outcome(_ outcomes: [Outcome]) -> Outcome { Outcome(of: outcomes) }
        #expect(outcome([.acknowledged, .acknowledged]) == .acknowledged)
        #expect(outcome([.acknowledged, retry, large]) == .partial(rejected: [], retry: [1, 2]))
        #expect(outcome([large, retry]) == large)
        #expect(NATSOutput.messageID("a-1") == "a-1")
        for odd in ["", "a b", "a\r\nNats-Rollup: all", "é", String(repeating: "x", count: 257)] {
            #expect(NATSOutput.messageID(odd).utf8.count == 64)
        }
    }
}
