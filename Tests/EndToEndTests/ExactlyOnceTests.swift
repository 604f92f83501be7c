import Glibc
import TestKit
import Testing

extension EndToEnd {
    /// `scripts/exactly-once` in its short form; CONTRIBUTING.md names the long one.
    @Suite("Exactly once, with real servers")
    struct ExactlyOnceTests {
        private func ship(_ type: String, _ arguments: String...) throws -> (code: Int32, text: String) {
            let directory = try TemporaryDirectory()
            let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
            let arguments =
                [
                    type, "--events", "5000", "--kills", "3", "--cuts", "2", "--batch", "50", "--patience",
                    "200",
                    "--binary", spoolship, "--directory", directory.path, "--seed", "\(Seeds.one(1))",
                ] + arguments
            let result = try run("/\(root)/scripts/exactly-once", arguments, within: .seconds(400))
            print(result.text)
            return result
        }

        @Test(
            "agent and server are killed or cut off, answers are lost: each event is stored exactly once",
            arguments: ["s3", "nats", "clickhouse", "elasticsearch"])
        func everyEventOnce(type: String) throws {
            let result = try ship(type)
            #expect(result.code == 0, "seed \(Seeds.one(1)): \(result.text)")
        }

        @Test("Kafka: no event is lost, and repeats have equal ids and bytes")
        func everyEventAtLeastOnce() throws {
            let result = try ship("kafka")
            #expect(result.code == 0, "seed \(Seeds.one(1)): \(result.text)")
        }

        @Test("a stream that forgets ids too early stores events twice, and the test notices")
        func repeatsAreFound() throws {
            let result = try ship("nats", "--window", "100ms", "--kills", "1", "--cuts", "1")
            #expect(
                result.code == 1 && result.text.contains("not exactly once: missing [], repeated ['"),
                "\(result.text)")
        }

        @Test("a table without deduplication stores events twice, and the test notices")
        func repeatsAreFoundInTables() throws {
            let result = try ship("clickhouse", "--remembered", "0", "--kills", "1", "--cuts", "1")
            #expect(
                result.code == 1 && result.text.contains("not exactly once: missing [], repeated ['"),
                "\(result.text)")
        }
    }
}
