import EventLoops
import Model
import TestKit
import Testing

@testable import Outputs

extension KafkaProperties {
    /// The value of a property; nil when the library's default is left.
    fileprivate subscript(_ name: String) -> String? { pairs.last { $0.name == name }?.value }
}

@Suite("The meaning of Kafka's errors")
struct KafkaAnswerTests {
    private static let rows: [(codes: [Int32], action: KafkaAnswer.Action)] = [
        ([10, 18], .split),
        ([3, -188, -190, 17, 29, 31, 53, -169, 58, 33, 34, 54, 43, 76, 35, -165, 42, 21, 40, -186], .hold),
        ([87, 32, 44], .bisect),
        ([5, 6, 8, 9, 19, 20, -183, 56, 57, 74, 75, 89, 14, 15, 16, 2, 4, -1], .retry),
        ([-195, -187, 13, -193, -181, -199, -192, -185, -166, 7], .retry),
        ([45, 46, 47, 49, 59, 90, -144, -148, -149, -150, -151, -152, -172, -197, -184, -194, -196], .retry),
    ]

    @Test("every relevant error has one row with its meaning")
    func table() throws {
        let expected = KafkaAnswerTests.rows.flatMap { row in row.codes.map { ($0, row.action) } }
        #expect(Set(expected.map(\.0)) == Set(KafkaAnswer.table.map(\.code)))
        #expect(KafkaAnswer.table.count == expected.count, "a code has two rows")
        for (code, action) in expected {
            let row = try #require(KafkaAnswer.table.first { $0.code == code })
            #expect(row.action == action, "\(row.name)")
            let outcome = KafkaAnswer.outcome(of: code, words: "said \u{1B}[1m so", wireBytes: 7)
            let failure: Failure? =
                switch (outcome, action) {
                case (.retry(let failure), .retry), (.held(let failure), .hold),
                    (.rejected(let failure), .bisect),
                    (.tooLarge(7, let failure), .split):
                    failure
                default: nil
                }
            #expect(failure?.message == "\(row.hint) (\(row.name))", "\(row.name): \(outcome)")
            // What the other side said is for the status alone, and plays no tricks there.
            #expect(failure?.excerpt == "said  [1m so" && failure?.message.contains("said") == false)
        }
    }

    @Test("only 0 acknowledges, and unknown codes are retried")
    func others() {
        #expect(KafkaAnswer.outcome(of: 0) == .acknowledged)
        for code in [Int32.min, -1000, -143, 1, 12, 97, 1000, .max] {
            #expect(
                retried(KafkaAnswer.outcome(of: code))?.message.contains("error \(code)") == true, "\(code)")
        }
    }

    @Test("records that were not acknowledged are sent again; if none was, the first one's outcome counts")
    func batches() {
        let late = KafkaAnswer.outcome(of: 7)
        let large = KafkaAnswer.outcome(of: 10)
        #expect(Outcome(of: []) == .acknowledged)
        #expect(Outcome(of: [.acknowledged, .acknowledged]) == .acknowledged)
        #expect(Outcome(of: [.acknowledged, late, large]) == .partial(rejected: [], retry: [1, 2]))
        #expect(Outcome(of: [large, late]) == large)
    }

    @Test(
        "the key is a member of the event: strings without quotes, other values as they are",
        arguments: [
            ("session_id", "s-1"), ("n", "7"), ("user.id", "u\"1"), ("dotted.name", "d"), ("gone", nil),
            ("user.gone", nil), ("n.x", nil), ("null", nil), ("flag", "true"), ("user.", #"{"id":"u\"1"}"#),
        ])
    func keys(path: String, expected: String?) throws {
        let line =
            #"{"session_id":"s-1","n":7,"user":{"id":"u\"1"},"dotted.name":"d","null":null,"flag":true}"#
        var found: [UInt8]?
        try EventScan.forEach(Array(line.utf8)) { event, _ in found = KafkaKey(path).value(of: event) }
        #expect(found.map { String(decoding: $0, as: UTF8.self) } == expected)
    }

    @Test("the protocol follows from TLS and user; verification and acks=all cannot be switched off")
    func properties() throws {
        var options = KafkaOptions(DestinationSettings(kafka: ["a:9093", "b"]))
        options.settings.compression = .zstd
        options.kafka.options = ["linger.ms": "50"]
        func made(_ password: Secret? = nil) -> KafkaProperties {
            KafkaProperties(options, authorities: Array("PEM".utf8), secret: password)
        }
        #expect(made()["security.protocol"] == "ssl" && made()["ssl.ca.pem"] == "PEM")
        #expect(made()["enable.ssl.certificate.verification"] == "true")
        #expect(made()["ssl.endpoint.identification.algorithm"] == "https")
        #expect(made()["acks"] == "all" && made()["enable.idempotence"] == "true")
        #expect(made()["bootstrap.servers"] == "a:9093,b" && made()["compression.type"] == "zstd")
        #expect(made()["linger.ms"] == "50" && made()["message.timeout.ms"] == "60000")
        options.settings.logIn("me", .inline(Secret("word")))
        #expect(made(Secret("word"))["security.protocol"] == "sasl_ssl")
        #expect(made(Secret("word"))["sasl.mechanism"] == "SCRAM-SHA-512")
        #expect(
            made(Secret("word"))["sasl.username"] == "me" && made(Secret("word"))["sasl.password"] == "word")
        options.kafka.tls = false
        #expect(made()["security.protocol"] == "sasl_plaintext" && made()["ssl.ca.pem"] == nil)
        options.settings.user = nil
        #expect(made()["security.protocol"] == "plaintext" && made()["sasl.username"] == nil)
    }

    private func refusal(_ change: (inout DestinationSettings) -> Void) -> String? {
        var settings = DestinationSettings(kafka: ["127.0.0.1:9092"])
        change(&settings)
        do throws(OutputError) {
            try KafkaOptions(settings).check()
            return nil
        } catch {
            return error.message
        }
    }

    @Test("invalid brokers, and headers that the agent sets itself, are refused")
    func checks() {
        #expect(refusal { _ in } == nil)
        #expect(refusal { $0.kafka.brokers = ["a b"] }?.contains("is not a broker") == true)
        #expect(refusal { $0.headers = ["event_id": Secret("x")] }?.contains("set by the agent") == true)
        #expect(refusal { $0.kafka.tls = false } == nil)
    }

    @Test(
        "a property that the agent sets, or that would break a promise, is refused with an alternative",
        arguments: [
            "acks", "enable.idempotence", "bootstrap.servers", "security.protocol", "sasl.password",
            "ssl.ca.location",
            "ssl.key.password", "enable.ssl.certificate.verification",
            "ssl.endpoint.identification.algorithm",
            "delivery.report.only.error", "test.mock.num.brokers", "plugin.library.paths",
            "message.timeout.ms",
        ])
    func ownProperties(name: String) {
        #expect(refusal { $0.kafka.options = [name: "1"] }?.contains("options has \(name): ") == true)
        #expect(refusal { $0.kafka.options = ["ssl.cipher.suites": "x", "linger.ms": "5"] } == nil)
    }
}
