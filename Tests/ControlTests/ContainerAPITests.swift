import Control
import Model
import TestKit
import Testing

/// Two containers, of which only the first has an address.
struct NotingContainers: ContainerControl {
    func list() async -> [JSONValue] { [["id": "GTM-1"], ["id": "GTM-2"]] }

    func show(_ id: String) async throws(ControlRefusal) -> JSONValue {
        guard id == "GTM-1" else { throw ControlRefusal(status: 404, code: "not_found", message: "no container") }
        return ["id": .string(id)]
    }

    func value(
        of key: String, type: String, in id: String?
    ) async throws(ControlRefusal) -> (value: JSONValue, isMissing: Bool) {
        ([.string("\(key) \(type) \(id ?? "any")")], key == "none")
    }

    func refresh(_ id: String?) async -> [JSONValue] { [["id": .string(id ?? "all"), "result": "success"]] }

    func document(_ id: String) async -> [UInt8] { Array("{\"exact\" :  1}".utf8) }

    func preview(_ id: String?, _ document: [UInt8], for time: Duration) async throws(ControlRefusal) -> JSONValue {
        guard document.count > 2 else {
            throw ControlRefusal(status: 422, code: "other_container", message: "for another")
        }
        return ["id": .string(id ?? "GTM-1"), "version": .integer(Int(time.components.seconds))]
    }

    func preview(_ id: String?, link: String, for time: Duration) async throws(ControlRefusal) -> JSONValue {
        ["id": .string(id ?? link), "version": .integer(Int(time.components.seconds))]
    }

    func endPreview(_ id: String?) async -> [String] { [id ?? "all"] }

    func watch() -> AsyncStream<JSONValue> {
        AsyncStream { lines in
            for number in 1...3 { lines.yield(["event": "opened", "n": .integer(number)]) }
            lines.finish()
        }
    }
}

@Suite("Control API of containers", .timeLimit(.minutes(1)))
struct ContainerAPITests {
    private func withContainers(_ body: (ControlClient) async throws -> Void) async throws {
        let routes = ControlAPI.routes(status: NoStatus(), containers: NotingContainers())
        try await withControlServer(routes) { (client, _) async throws in try await body(client) }
    }

    private struct NoStatus: StatusSource {
        func status() async -> StatusReport { SampleReport.healthy }
    }

    @Test("tm07, tm09, tm16: each request is answered with what was asked for")
    func requests() async throws {
        try await withContainers { client in
            #expect(try client.request("GET", "/v1/containers").json()["containers"]?.array?.count == 2)
            #expect(try client.request("GET", "/v1/containers/GTM-1").json()["id"] == "GTM-1")
            #expect(try client.request("GET", "/v1/containers/GTM-9").status == 404)
            let exact = try client.request("GET", "/v1/containers/GTM-1/document")
            #expect(exact.body == Array("{\"exact\" :  1}".utf8))
            let value = try client.request(
                "GET", "/v1/values", query: [("key", "none"), ("type", "double"), ("container", "GTM-1")]
            ).json()
            #expect(value["value"] == ["none double GTM-1"] && value["missing"] == true)
            #expect(try client.request("GET", "/v1/values").status == 400)
            let refreshed = try client.request("POST", "/v1/containers/refresh", body: ["id": "GTM-1"]).json()
            #expect(refreshed["refreshes"]?.array?.first?["id"] == "GTM-1")
            let lines = try client.request("GET", "/v1/container-events").body.split(separator: 0x0A)
            #expect(lines.count == 3)
        }
    }

    @Test("tm16: a draft needs a document and a bounded time; one for another container is told apart")
    func previews() async throws {
        try await withContainers { client in
            let path = "/v1/containers/preview"
            let taken = try client.request("POST", path, body: ["document": "{ }", "ttl_ms": 60_000])
            #expect(taken.status == 200)
            #expect(try taken.json()["version"] == 60)
            #expect(try client.request("POST", path, body: ["document": "{ }"]).json()["version"] == 1800)
            #expect(try client.request("POST", path).status == 400)
            #expect(try client.request("POST", path, body: ["document": "{ }", "ttl_ms": 0]).status == 400)
            #expect(try client.request("POST", path, body: ["document": "{ }", "ttl_ms": 86_400_001]).status == 400)
            #expect(try client.request("POST", path, body: ["document": "{}"]).status == 422)
            let ended = try client.request("POST", "\(path)/end").json()
            #expect(ended["ended"] == ["all"])
        }
    }
}
