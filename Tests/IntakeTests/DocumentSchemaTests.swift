import Containers
import EventLoops
import Logs
import Model
import Queue
import Schemas
import TestKit
import Testing

@testable import Intake

/// Schemas of documents in the intake: when they take effect, and which one counts.
@Suite("Schemas of documents in the intake")
struct DocumentSchemaTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func withHost(
        _ schemas: SchemaRules = SchemaRules(), _ body: (RuleHost) async throws -> Void
    ) async throws {
        let reader = try EventLoop(name: "reader")
        let storeLoop = try EventLoop(name: "store")
        try reader.start()
        try storeLoop.start()
        defer {
            reader.stop()
            storeLoop.stop()
        }
        let host = try RuleHost(
            in: directory, storeLoop: storeLoop, loop: reader, time: ManualTime(), schemas: schemas)
        try await body(host)
        #expect(host.store.snapshot.intake.balances)
        await host.store.close()
    }

    /// A document with a schema that bounds `n` in the events `bought`.
    private func document(_ id: String = "GTM-1", version: Int, most: Int, own: String = "") -> String {
        """
        {"id": "\(id)", "version": \(version),
         "schemas": {"bought": {\(own)"properties": {"n": {"maximum": \(most)}}}}}
        """
    }

    private func bought(_ n: Int) -> String { "{\"name\":\"bought\",\"n\":\(n)}" }

    private func details(_ host: RuleHost) async throws -> [String] {
        try await host.quarantined().map { "\($0.reason.rawValue) \($0.detail)" }
    }

    @Test("a document's schema acts from its publication to its end, and names the document and its version")
    func publication() async throws {
        try await withHost { host in
            try await host.takeAndCommit([bought(5)])
            try await host.publish(document(version: 7, most: 3))
            try await host.takeAndCommit([bought(5), bought(3), "{\"name\":\"Seen\",\"n\":9}"])
            try await host.publish(document(version: 8, most: 1, own: "\"version\": \"b\", "))
            try await host.takeAndCommit([bought(3), bought(1)])
            await host.withdraw()
            try await host.takeAndCommit([bought(5)])
            #expect(try await host.names(of: "main").count == 5)
            #expect(
                try await details(host) == [
                    "schema bought (GTM-1 version 7): /n is above maximum 3, at byte 22",
                    "schema bought (GTM-1 version 8): /n is above maximum 1, at byte 22",
                ])
            let counts = await host.counts().schemas.sorted { $0.key < $1.key }
            #expect(counts.map(\.key.version) == ["7", "b"])
            #expect(counts.allSatisfy { $0.value.valid == 1 && $0.value.invalid == 1 })
        }
    }

    @Test("if the directory and a document name an event, the directory's schema counts, alone")
    func directoryWins() async throws {
        let local = SchemaSet([
            try EventSchema(name: "bought", Array(#"{"properties":{"n":{"maximum":10}}}"#.utf8))
        ])
        #expect(local.unused.isEmpty)
        try await withHost(SchemaRules(set: local)) { host in
            try await host.publish(document(version: 7, most: 3))
            try await host.takeAndCommit([bought(5), bought(11)])
            #expect(try await details(host) == ["schema bought: /n is above maximum 10, at byte 22"])
        }
    }

    @Test("of two documents the first in the configuration's order counts")
    func firstDocumentWins() async throws {
        try await withHost { host in
            try await host.publish(
                document("GTM-1", version: 1, most: 3), document("GTM-2", version: 2, most: 1))
            try await host.takeAndCommit([bought(2), bought(4)])
            #expect(
                try await details(host) == [
                    "schema bought (GTM-1 version 1): /n is above maximum 3, at byte 22"
                ])
        }
    }

    @Test("in report mode a document's schema only counts")
    func report() async throws {
        try await withHost(SchemaRules(isReport: true)) { host in
            try await host.publish(document(version: 7, most: 3))
            try await host.takeAndCommit([bought(5)])
            #expect(try await details(host).isEmpty)
            #expect(await host.counts().schemas.values.map(\.invalid) == [1])
            #expect(host.log.messages.contains { $0.text.contains("do not match their schema") })
        }
    }

    @Test("schemas of a container for some apps concern no others")
    func apps() async throws {
        let container = try CompiledContainer(
            try ContainerDocument(reading: Array(document(version: 7, most: 3).utf8)), apps: ["shop"])
        let set = SchemaSet().followed(by: [try #require(container.schemas)])
        Array("bought".utf8).withUnsafeBufferPointer { name in
            #expect(set.table(of: "shop").index(of: name) == 0)
            #expect(set.table(of: "web").index(of: name) == nil)
        }
        #expect(set.unused.isEmpty)
        #expect(set.followed(by: [try #require(container.schemas)]).unused == ["bought (GTM-1 version 7)"])
    }

    @Test("many versions leave a bounded number of counts, and no count is lost")
    func manyVersions() async throws {
        try await withHost { host in
            let names = (0..<100).map { "\"e\($0)\": true" }.joined(separator: ", ")
            for version in 1...60 {
                try await host.publish(
                    "{\"id\": \"GTM-1\", \"version\": \(version), \"schemas\": {\(names)}}")
                try await host.takeAndCommit(["{\"name\":\"e1\"}"])
            }
            let counts = await host.counts().schemas
            #expect(counts.count <= 4096 + 101, "\(counts.count)")
            #expect(counts.values.reduce(0) { $0 + $1.valid } == 60)
        }
    }
}
