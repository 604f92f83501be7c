import EventLoops
import Glibc
import TestKit
import Testing

/// What a receiver does to the first requests, and what the agent must make of it.
struct Misbehaviour: Sendable, CustomTestStringConvertible {
    let faults: [String]
    /// The outcome that is counted for it.
    let outcome: String
    /// The kind of failure that is counted for it.
    let kind: String

    init(_ fault: String, times: Int = 2, outcome: String = "retry", kind: String = "status") {
        faults = Array(repeating: fault, count: times)
        self.outcome = outcome
        self.kind = kind
    }

    var testDescription: String { faults[0] }
}

extension EndToEnd {
    @Suite("Receivers that misbehave, over TLS")
    struct FaultyReceiverTests {
        /// A bench whose agent asks a scripted receiver, patient enough for a test only.
        private func bench() throws -> (bench: Workbench, certificates: Certificates) {
            let bench = try Workbench()
            let certificates = try Certificates(in: bench.path)
            bench.settings["destination.tls.ca_file"] = "\"\(certificates.caFile)\""
            bench.settings["destination.connect_timeout"] = "\"2s\""
            bench.settings["destination.request_timeout"] = "\"3s\""
            bench.settings["retry.intervals"] = #"["200ms", "300ms", "500ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            return (bench, certificates)
        }

        private func receiver(_ bench: Workbench, _ certificates: Certificates, _ faults: [String]) throws
            -> FaultyReceiver
        {
            try certificates.issue("\(bench.path)/server")
            let receiver = try FaultyReceiver(
                in: bench.path, certificate: "\(bench.path)/server", store: bench.events, faults: faults)
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(receiver.port)/in\""
            return receiver
        }

        @Test(
            "after each fault the ledger balances, and every event arrived once by its Idempotency-Key",
            arguments: [
                Misbehaviour("429 Retry-After: 1", outcome: "retry_after"),
                Misbehaviour("retry-after-date", outcome: "retry_after"),
                Misbehaviour("429 x-ms-retry-after-ms: 1200", outcome: "retry_after"),
                Misbehaviour("503", times: 5), Misbehaviour("hang", kind: "timeout"),
                Misbehaviour("drip", kind: "timeout"), Misbehaviour("reset-in-body", kind: "connection"),
                Misbehaviour("cut-after-body", kind: "connection"),
                Misbehaviour("cut-after-storing", times: 3, kind: "connection"),
                Misbehaviour("401", times: 1, outcome: "held"),
                Misbehaviour("302 Location: /", times: 1, outcome: "held"),
            ])
        func fault13_misbehaviour(_ case: Misbehaviour) throws {
            let (bench, certificates) = try bench()
            let receiver = try receiver(bench, certificates, `case`.faults)
            try bench.startAgent()
            try bench.append(keyed(0..<300), to: "app.jsonl")
            try bench.waitUntilDelivered(300)
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
            #expect(receiver.count(`case`.faults[0]) == `case`.faults.count, "\(receiver.printed)")
            let figures = try bench.figures()
            let main = #"destination="main""#
            let outcome = "spoolship_delivery_attempts_total{\(main),outcome=\"\(`case`.outcome)\"}"
            let kind = "spoolship_delivery_failures_total{\(main),kind=\"\(`case`.kind)\"}"
            #expect(
                figures.value(outcome) >= `case`.faults.count && figures.value(kind) >= `case`.faults.count)
        }

        @Test("413 above a size: batches are halved until they fit, and each event arrives once")
        func fault12_tooLarge() throws {
            let (bench, certificates) = try bench()
            let receiver = try receiver(bench, certificates, ["too-large:1100"])
            try bench.startAgent()
            var random = SplitMix64(seed: 413)
            // Numbers that no compression makes small.
            let lines = (0..<300).map { number in
                let text = (0..<6).map { _ in String(random.next(), radix: 36) }.joined()
                return #"{"name":"load","properties":{"key":"e\#(number)","text":"\#(text)"}}"# + "\n"
            }
            try bench.append(lines.joined(), to: "app.jsonl")
            try bench.waitUntilDelivered(300)
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
            let refused = #"spoolship_delivery_attempts_total{destination="main",outcome="too_large"}"#
            #expect(try bench.figures().value(refused) > 0, "\(receiver.printed)")
        }

        @Test("400 for a marked event: it becomes a dead letter, and its neighbours arrive once")
        func fault11_marked() throws {
            let (bench, certificates) = try bench()
            let faulty = try receiver(bench, certificates, ["marker:POISON"])
            try bench.startAgent()
            try bench.append(keyed(0..<200), to: "app.jsonl")
            try bench.waitUntilDelivered(200)
            let poison = #"{"name":"POISON","properties":{"text":"no"}}"# + "\n"
            try bench.append(keyed(200..<233) + poison + keyed(233..<300), to: "app.jsonl")
            try wait(.seconds(60), "the dead letter: \(bench.agentLog)", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_deliveries_dead_lettered_total") == 1
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            try bench.expectBalance()
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
            #expect(faulty.count("ok") > 4)
        }

        @Test(
            "for a wrong name or an expired certificate nothing is sent, with a reason; later all arrives",
            arguments: [
                (["DNS:elsewhere.test"], 86_400, "is for another name"),
                (["IP:127.0.0.1"], -60, "has expired"),
            ])
        func badCertificates(names: [String], until: Int, says: String) throws {
            let (bench, certificates) = try bench()
            try certificates.issue("\(bench.path)/server", names: names, until: .seconds(until))
            let receiver = try FaultyReceiver(
                in: bench.path, certificate: "\(bench.path)/server", store: bench.events)
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(receiver.port)/\""
            try bench.startAgent()
            try bench.append(keyed(0..<120), to: "app.jsonl")
            let failures = #"spoolship_delivery_failures_total{destination="main",kind="tls"}"#
            try wait(.seconds(30), "a failure: \(bench.agentLog)") { try bench.figures().value(failures) > 0 }
            try wait(.seconds(30), "the log to say why: \(bench.agentLog)") { bench.agentLog.contains(says) }
            #expect(!receiver.printed.contains("POST"))
            try certificates.issue("\(bench.path)/server")
            try bench.waitUntilDelivered(120)
            try bench.expectOnce(Set((0..<120).map { "e\($0)" }), member: "key")
        }
    }
}
