import EventLoops
import Model
import Receiver
import Synchronization
import TestKit
import Testing

@testable import Outputs

@Suite("Placeholders in the address and the headers")
struct RequestTemplateTests {
    private static let lines = """
        {"app":"shop","name":"a","team":"x","n":1}
        {"app":"web","name":"b","team":"y","n":2}
        {"app":"shop","name":"c","team":"x","n":3}

        """

    private func batch(_ lines: String = lines, of apps: [String] = []) -> Batch {
        let count = lines.utf8.count { $0 == UInt8(ascii: "\n") }
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: count,
            events: 0..<count)
        var batch = Sample.batch([part])
        batch.header.apps = apps
        return batch
    }

    /// A server that notes what it gets, and answers a request with the status that a text in its head asks for.
    private func peer(_ bench: Bench, _ seen: Seen, failing: String? = nil) throws -> ScriptedPeer {
        try ScriptedPeer(bench.identity()) { connection in
            while let (head, body) = connection.request() {
                seen.note(head + "\r\n\r\n" + String(decoding: body, as: UTF8.self))
                let status = failing.map { head.contains($0) } == true ? "503 Busy" : "200 OK"
                connection.write("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
            }
        }
    }

    private func numbers(_ request: String) -> [String] {
        request.split(separator: "\r\n\r\n").last?.split(separator: "\n").compactMap {
            slice(String($0))?["n"]?.text
        } ?? []
    }

    @Test("events of each tenant are one request, under a key that is equal at every attempt")
    func tenants() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: "\(peer.url)in/{member:team}?app={app}") {
            $0.compression = .none
            $0.headers = ["X-Scope-OrgID": Secret("t-{app}"), "X-Meta": Secret(#"{"a":1}"#)]
        }
        #expect(output.asksWhose)
        for _ in 1...2 { #expect(await output.send(batch(of: ["shop", "Web 1", "shop"])) == .acknowledged) }
        try #require(seen.all.count == 4)
        let (shop, web) = (seen.all[0], seen.all[1])
        #expect(
            shop.hasPrefix("POST /in/x?app=shop HTTP/1.1\r\n")
                && shop.contains("\r\nX-Scope-OrgID: t-shop\r\n"))
        #expect(
            web.hasPrefix("POST /in/y?app=Web_1 HTTP/1.1\r\n")
                && web.contains("\r\nX-Scope-OrgID: t-Web_1\r\n"))
        #expect(shop.contains("\r\nX-Meta: {\"a\":1}\r\n"))
        #expect(numbers(shop) == ["1", "3"] && numbers(web) == ["2"])
        func key(_ request: String) -> Substring? {
            request.split(separator: "\r\n").first { $0.hasPrefix("Idempotency-Key: ") }
        }
        #expect(key(shop) != key(web) && key(shop) == key(seen.all[2]) && key(web) == key(seen.all[3]))
    }

    /// Azure's Put Blob as its reference has it: what the request must say, and the blobs by their paths.
    private final class Container: Sendable {
        private let state = Mutex<(blobs: [String: [String]], requests: Int)>(([:], 0))

        var blobs: [String: [String]] { state.withLock { $0.blobs } }

        /// The status of an answer; the first one is lost after the blob was stored.
        func answer(_ head: String, _ body: [UInt8]) -> String? {
            let lines = head.split(separator: "\r\n").map { String($0) }
            let words = lines[0].split(separator: " ")
            let target = words[1].split(separator: "?", maxSplits: 1)
            let headers = lines.dropFirst().map { $0.lowercased() }
            guard words[0] == "PUT" else { return "405 Method Not Allowed" }
            guard headers.contains("x-ms-blob-type: blockblob"),
                headers.contains("content-length: \(body.count)")
            else { return "400 Bad Request" }
            guard target.count == 2, target[1] == "sv=2024-11-04&sp=cw&sig=a%2Bb%3D" else {
                return "403 Forbidden"
            }
            return state.withLock { state in
                state.requests += 1
                state.blobs[String(target[0])] = String(decoding: body, as: UTF8.self).split(separator: "\n")
                    .map {
                        String($0)
                    }
                return state.requests == 1 ? nil : "201 Created"
            }
        }
    }

    @Test("an answer that quotes an argument of the address is hidden as it was sent and decoded")
    func hiddenArguments() {
        let request = HTTPRequest(url: "https://a/b?sv=2024-11-04&sig=a%2Bb%3Dc")
        #expect(request.secrets == ["2024-11-04", "a%2Bb%3Dc", "a+b=c"].filter { $0.utf8.count >= 6 })
        let long = HTTPRequest(url: "https://a/b?sig=abc%2Bdef%3D")
        #expect(long.secrets == ["abc%2Bdef%3D", "abc+def="])
    }

    @Test("Azure: blobs of a batch have addresses of their own, equal at every attempt, and none is doubled")
    func blobs() async throws {
        let bench = try Bench()
        let container = Container()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, body) = connection.request() {
                guard let status = container.answer(head, body) else { return }
                connection.write("HTTP/1.1 \(status)\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        let file = "\(bench.directory.path)/sas"
        try PrivateFile.replace(file, with: "?sv=2024-11-04&sp=cw&sig=a%2Bb%3D\n")
        var body = BodySettings()
        body.event = try BodyTemplate("{{event}}")
        body.separator = "\n"
        body.method = .put
        let settings = body
        func output(_ path: String) throws -> HTTPOutput {
            try bench.output(to: peer.url + path, format: TemplateEncoder(settings)) {
                $0.http.format = .template(settings)
                $0.compression = .none
                $0.headers = ["x-ms-blob-type": Secret("BlockBlob")]
                $0.token.file = file
                $0.http.tokenIn = .query
            }
        }
        let plain = try output("events/{batch_id}.jsonl")
        #expect(retried(await plain.send(batch())) != nil, "the first answer is lost")
        #expect(await plain.send(batch()) == .acknowledged)
        let id = batch().header.id
        #expect(container.blobs.mapValues(\.count) == ["/events/\(id).jsonl": 3])
        let byTeam = try output("teams/{member:team}/{batch_id}.jsonl")
        for _ in 1...2 { #expect(await byTeam.send(batch()) == .acknowledged) }
        let names = container.blobs.keys.sorted().dropFirst()
        try #require(names.count == 2, "\(names)")
        #expect(names[1].hasPrefix("/teams/x/\(id)-0-2-") && names[1].hasSuffix(".jsonl"))
        #expect(names[2] == "/teams/y/\(id)-1-1.jsonl")
        #expect(container.blobs.values.map(\.count).sorted() == [1, 2, 3])
    }

    @Test("a batch of one tenant is one request under the batch's id")
    func oneTenant() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.headers = ["X-Scope-OrgID": Secret("{app}")] }
        #expect(await output.send(batch(of: ["shop", "shop", "shop"])) == .acknowledged)
        #expect(seen.all.count == 1 && seen.last.contains("\r\nIdempotency-Key: \(batch().header.id)\r\n"))
    }

    @Test("a tenant whose request fails keeps its events; those of others are not sent again")
    func oneTenantFails() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen, failing: "X-Scope-OrgID: web")
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) { $0.headers = ["X-Scope-OrgID": Secret("{app}")] }
        #expect(await output.send(batch(of: ["shop", "web", "shop"])) == .partial(rejected: [], retry: [1]))
    }

    @Test("each tenant's labels have its own app: pieces of a batch know their apps")
    func lokiTenants() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: LokiEncoder()) {
            $0.compression = .none
            $0.headers = ["X-Scope-OrgID": Secret("{member:team}")]
        }
        #expect(await output.send(batch(of: ["one", "two", "one"])) == .acknowledged)
        let labels = seen.all.map { request in
            slice(String(request.split(separator: "\r\n\r\n").last ?? ""))?["streams"]?.elements?.compactMap {
                $0["stream"]?["app"]?.string
            }
        }
        #expect(labels == [["one"], ["two"]])
    }

    @Test("tenants beyond the limit share one, and an unknown placeholder is refused")
    func bound() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) {
            $0.templateValues = 1
            $0.headers = ["X-Scope-OrgID": Secret("{name}")]
        }
        let (outcome, measures) = await output.sendMeasured(batch(of: ["shop", "shop", "shop"]))
        #expect(outcome == .acknowledged && measures.templates.beyond == 2)
        #expect(seen.all.count == 2 && seen.last.contains("X-Scope-OrgID: other"))
        #expect(throws: OutputError.self) {
            try bench.output(to: peer.url) { $0.headers = ["X-Scope-OrgID": Secret("{apps}")] }
        }
        #expect(throws: OutputError.self) { try bench.output(to: "\(peer.url){member:}") }
    }

    @Test("a doubled brace is a brace, and the message about an unknown placeholder says so")
    func literalBraces() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try peer(bench, seen)
        defer { peer.stop() }
        let output = try bench.output(to: "\(peer.url)in/{app}/{{team}}") {
            $0.headers = ["X-Odd": Secret("{{x}} of {app}"), "X-Meta": Secret(#"{"a":{"b":1}}"#)]
        }
        #expect(await output.send(batch(of: ["shop", "shop", "shop"])) == .acknowledged)
        #expect(seen.last.hasPrefix("POST /in/shop/{team} HTTP/1.1\r\n"), "\(seen.last)")
        #expect(seen.last.contains("\r\nX-Odd: {x} of shop\r\n"))
        // Without a placeholder nothing is read into a header: JSON stays as it is.
        #expect(seen.last.contains("\r\nX-Meta: {\"a\":{\"b\":1}}\r\n"))
        do {
            _ = try bench.output(to: "\(peer.url)in/{team}")
            Issue.record("an unknown placeholder was accepted")
        } catch {
            #expect("\(error)".contains("has {team}, which is not a placeholder"), "\(error)")
            #expect("\(error)".contains("for a brace itself write {{ or }}"), "\(error)")
        }
    }

    @Test("answers are shown by check without quoted secrets and control characters")
    func answers() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while connection.request() != nil {
                let body = "no \u{1B}[31m Bearer sesame-sesame\n"
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url) {
            $0.token = SecretSetting(.inline(Secret("sesame-sesame")))
            $0.http.accept.body = "accepted"
        }
        let sent = await output.sendShowingAnswers(batch())
        #expect(retried(sent.outcome)?.message.contains("lacks the text of accept.body") == true)
        #expect(sent.answers == [AnswerExcerpt(status: 200, text: "no [31m **** ****")])
        #expect(await output.measures.answers == nil)
    }
}
