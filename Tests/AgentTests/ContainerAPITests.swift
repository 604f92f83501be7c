import Control
import Model
import TestKit
import Testing

@testable import Agent

@Suite("Control API of containers", .timeLimit(.minutes(2)))
struct ContainerAPITests {
    private static let document = #"{"id": "GTM-1", "version": 3, "values": {"colour": "red", "size": 7}}"#

    /// An agent with two containers, of which only the first has a complete document.
    private func withContainers(_ body: (ControlClient) async throws -> Void) async throws {
        try await withAgent(
            """
            [[container]]
            id = "GTM-1"
            default_file = "DIRECTORY/GTM-1"
            [[container]]
            id = "GTM-2"
            default_file = "DIRECTORY/GTM-2.json"
            """, files: ["GTM-1": ContainerAPITests.document, "GTM-2.json": #"{"colour": "blue"}"#]
        ) { try await body($0.client) }
    }

    @Test("tm07, tm09: each request is answered with what was asked for")
    func requests() async throws {
        try await withContainers { (client) async throws in
            let all = try client.request("GET", "/v1/containers").json()["containers"]?.array
            #expect(all?.map { $0["id"] } == ["GTM-1", "GTM-2"])
            let shown = try client.request("GET", "/v1/containers/GTM-1").json()
            #expect(shown["version"] == 3 && shown["values"] == ["colour": "red", "size": 7])
            #expect(try client.request("GET", "/v1/containers/GTM-9").status == 404)
            let exact = try client.request("GET", "/v1/containers/GTM-1/document")
            #expect(exact.body == Array(ContainerAPITests.document.utf8))
            #expect(try client.request("GET", "/v1/containers/GTM-2/document").status == 404)
            func value(_ query: (String, String)...) throws -> JSONValue {
                try client.request("GET", "/v1/values", query: query).json()
            }
            #expect(try value(("key", "colour")) == ["key": "colour", "value": "blue", "missing": false])
            #expect(
                try value(("key", "size"), ("type", "double"), ("container", "GTM-1"))
                    == ["key": "size", "value": .double(7), "missing": false])
            #expect(
                try value(("key", "none"), ("type", "integer")) == [
                    "key": "none", "value": 0, "missing": true,
                ])
            #expect(try value(("key", "size"), ("type", "poem"))["error"]?["code"] == "out_of_range")
            #expect(try client.request("GET", "/v1/values").status == 400)
            let refreshed = try client.request("POST", "/v1/containers/refresh", body: ["id": "GTM-1"]).json()
            #expect(refreshed["error"]?["code"] == "no_url")
        }
    }

    @Test("tm16: a draft needs a document and a limited duration; a draft for another container is refused")
    func previews() async throws {
        try await withContainers { (client) async throws in
            let path = "/v1/containers/preview"
            let draft = JSONValue.string(#"{"id": "GTM-1", "version": 4, "values": {"colour": "green"}}"#)
            let other = JSONValue.string(#"{"id": "GTM-3", "version": 4, "values": {}}"#)
            #expect(
                try client.request("POST", path, body: ["document": draft, "ttl_ms": 60_000]).json()
                    == ["id": "GTM-1", "version": 4])
            #expect(try client.request("GET", "/v1/containers/GTM-1").json()["source"] == "preview")
            #expect(try client.request("POST", path).status == 400)
            #expect(try client.request("POST", path, body: ["document": draft, "ttl_ms": 0]).status == 400)
            #expect(
                try client.request("POST", path, body: ["document": draft, "ttl_ms": 86_400_001]).status
                    == 400)
            #expect(try client.request("POST", path, body: ["document": "{}"]).status == 400)
            #expect(try client.request("POST", path, body: ["document": other]).status == 422)
            #expect(try client.request("POST", path, body: ["url": "https://x.example/"]).status == 400)
            #expect(try client.request("POST", "\(path)/end", body: [:]).json()["ended"] == ["GTM-1"])
            #expect(try client.request("GET", "/v1/containers/GTM-1").json()["source"] == "default")
        }
    }
}
