import EventLoops
import Foundation
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Access tokens of OAuth 2")
struct OAuth2Tests {
    private struct Request: Decodable, Equatable {
        var path: String
        var status: Int
    }

    /// oauthlib as the token endpoint and the receiver.
    private struct Room {
        let bench: Bench
        let server: PythonServer
        let time = ManualTime()

        /// The private key of the account `agent@test`; with `.json` behind it as Google hands it out.
        var keyFile: String { "\(bench.directory.path)/account" }

        init(hasAccount: Bool = false) async throws {
            bench = try Bench()
            let file = "\(bench.directory.path)/oauth-port"
            let key = hasAccount ? ["\(bench.directory.path)/account"] : []
            server = try await PythonServer("oauth_server.py", [file] + key, portFile: file)
        }

        /// An output with the JWT bearer grant, whose assertions say the real time.
        func output(privateKey: String, _ change: (inout OAuth2Settings) -> Void = { _ in }) throws
            -> HTTPOutput
        {
            var options = HTTPOptions(url: "http://127.0.0.1:\(server.port)/events")
            options.settings.oauth2.grant = .jwtBearer
            options.settings.oauth2.tokenURL = EndpointURL("http://127.0.0.1:\(server.port)/token")
            options.settings.oauth2.scope = "events.write"
            options.settings.oauth2.subject = "somebody \"else\""
            options.settings.oauth2.privateKey.file = privateKey
            change(&options.settings.oauth2)
            return try HTTPOutput(
                "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log),
                time: SystemTime())
        }

        func output(secretFile: String? = nil) throws -> HTTPOutput {
            var options = HTTPOptions(url: "http://127.0.0.1:\(server.port)/events")
            options.settings.oauth2.tokenURL = EndpointURL("http://127.0.0.1:\(server.port)/token")
            options.settings.oauth2.clientID = "agent"
            options.settings.oauth2.scope = "events.write"
            options.settings.oauth2.secret.file = secretFile
            options.settings.oauth2.secret.inline = Secret("a secret: with+signs")
            return try HTTPOutput(
                "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: time)
        }

        func steer(_ what: String, _ body: String = "") async throws {
            _ = try await server.steer(.put, what, body, on: bench.loop)
        }

        func count(_ path: String) async throws -> Int {
            let log = try await server.steer(.get, "log", on: bench.loop)
            return try JSONDecoder().decode([Request].self, from: log).count { $0.path == path }
        }
    }

    @Test("one of many requests fetches a token, and again a fifth of its life before it expires")
    func renewal() async throws {
        let room = try await Room()
        let output = try room.output()
        async let first = output.send(try Sample.batch(1, number: 1))
        async let second = output.send(try Sample.batch(1, number: 2))
        async let third = output.send(try Sample.batch(1, number: 3))
        #expect(try await [first, second, third] == [.acknowledged, .acknowledged, .acknowledged])
        #expect(try await room.count("/token") == 1)
        room.time.advance(by: .seconds(239))
        #expect(await output.send(try Sample.batch(1, number: 4)) == .acknowledged)
        #expect(try await room.count("/token") == 1)
        room.time.advance(by: .seconds(2))
        #expect(await output.send(try Sample.batch(1, number: 5)) == .acknowledged)
        #expect(try await room.count("/token") == 2)
    }

    @Test("a token that was requested with a wrong clock is renewed, or dropped when refused, like any other")
    func clockThatWasAhead() async throws {
        let room = try await Room()
        let output = try room.output()
        let today = room.time.wallTime
        room.time.step(to: today + .seconds(86_400))
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        room.time.step(to: today)
        room.time.advance(by: .seconds(241))
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(try await room.count("/token") == 2)
        room.time.step(to: today - .seconds(86_400))
        try await room.steer("revoke")
        room.time.advance(by: .seconds(60))
        #expect(retried(await output.send(try Sample.batch(1, number: 3)))?.status == 401)
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
    }

    @Test("while the token endpoint is down, a token is used until it expires, and then batches wait")
    func endpointDown() async throws {
        let room = try await Room()
        let output = try room.output()
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        try await room.steer("broken", "3")
        room.time.advance(by: .seconds(241))
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        room.time.advance(by: .seconds(60))
        let failure = retried(await output.send(try Sample.batch(1, number: 3)))
        #expect(failure?.message.contains("the token endpoint answered 503") == true)
        #expect(retried(await output.send(try Sample.batch(1, number: 3))) != nil)
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
    }

    @Test("a token that the receiver refuses is renewed; if the new one is refused, the destination is held")
    func revoked() async throws {
        let room = try await Room()
        let output = try room.output()
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        // However young it is.
        try await room.steer("revoke")
        #expect(retried(await output.send(try Sample.batch(1, number: 2)))?.status == 401)
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(try await room.count("/token") == 2)
        try await room.steer("revoke")
        room.time.advance(by: .seconds(59))
        #expect(held(await output.send(try Sample.batch(1, number: 3)))?.status == 401)
        #expect(held(await output.send(try Sample.batch(1, number: 3)))?.status == 401)
        #expect(try await room.count("/token") == 2)
        // What a person repairs is noticed at the next probe.
        room.time.advance(by: .seconds(1))
        #expect(retried(await output.send(try Sample.batch(1, number: 3)))?.status == 401)
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
        #expect(try await room.count("/token") == 3)
    }

    @Test("a person's resume has a token issued again, also within the first minute of a refused one")
    func resumed() async throws {
        let room = try await Room()
        let output = try room.output()
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        try await room.steer("revoke")
        #expect(retried(await output.send(try Sample.batch(1, number: 2)))?.status == 401)
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        try await room.steer("revoke")
        #expect(held(await output.send(try Sample.batch(1, number: 3)))?.status == 401)
        await output.dropIssuedCredentials()
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
        #expect(try await room.count("/token") == 3)
    }

    @Test("a resume while the token endpoint is down leaves a valid token in use")
    func resumedWithoutEndpoint() async throws {
        let room = try await Room()
        let output = try room.output()
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        try await room.steer("broken", "1")
        await output.dropIssuedCredentials()
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
    }

    @Test(
        "a token that is refused of several requests at once holds none of them, and is asked for again once")
    func revokedAtOnce() async throws {
        let room = try await Room()
        let output = try room.output()
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        try await room.steer("revoke")
        room.time.advance(by: .seconds(60))
        async let first = output.send(try Sample.batch(1, number: 2))
        async let second = output.send(try Sample.batch(1, number: 3))
        async let third = output.send(try Sample.batch(1, number: 4))
        for outcome in try await [first, second, third] {
            // On a busy machine one of them begins only when there is another token.
            #expect(outcome == .acknowledged || retried(outcome)?.status == 401, "\(outcome)")
        }
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(try await room.count("/token") == 2)
    }

    @Test("a wrong client secret holds the destination, until its file has the right one")
    func wrongSecret() async throws {
        let room = try await Room()
        let file = "\(room.bench.directory.path)/secret"
        try PrivateFile.replace(file, with: "wrong\n")
        let output = try room.output(secretFile: file)
        let failure = held(await output.send(try Sample.batch(1)))
        #expect(failure?.message.contains("the token endpoint answered 401 invalid_client") == true)
        try PrivateFile.replace(file, with: "a secret: with+signs\n")
        room.time.advance(by: .seconds(2))
        #expect(await output.send(try Sample.batch(1)) == .acknowledged)
        let logged = room.bench.log.messages.map { "\($0)" }.joined()
        #expect(!logged.contains("wrong") && !logged.contains("with+signs"))
    }

    @Test("an account's key signs an assertion for a token: from the file of Google, or as PEM with settings")
    func assertion() async throws {
        let room = try await Room(hasAccount: true)
        let google = try room.output(privateKey: "\(room.keyFile).json")
        for number: UInt64 in 1...3 {
            #expect(await google.send(try Sample.batch(1, number: number)) == .acknowledged)
        }
        #expect(try await room.count("/token") == 1)
        let plain = try room.output(privateKey: room.keyFile) {
            $0.clientID = "agent@test"
            $0.keyID = "key 1"
        }
        #expect(await plain.send(try Sample.batch(1, number: 4)) == .acknowledged)
        try await room.steer("revoke")
        #expect(retried(await plain.send(try Sample.batch(1, number: 5)))?.status == 401)
        #expect(await plain.send(try Sample.batch(1, number: 5)) == .acknowledged)
    }

    @Test("an assertion that the token endpoint refuses holds the destination, and says so without the key")
    func refusedAssertion() async throws {
        let room = try await Room(hasAccount: true)
        let output = try room.output(privateKey: "\(room.keyFile).json") { $0.audience = "https://another" }
        let failure = held(await output.send(try Sample.batch(1)))
        #expect(failure?.message.contains("the token endpoint answered 400 invalid_grant") == true)
        #expect(await output.probe() != nil, "check --connect sees it")
    }

    @Test("a key that cannot sign is refused before anything is sent; a bad new one leaves the old in use")
    func badKeys() async throws {
        let room = try await Room(hasAccount: true)
        let file = "\(room.bench.directory.path)/key"
        let small = try String(contentsOfFile: "\(room.keyFile).small", encoding: .utf8)
        for (text, complaint) in [
            ("{\"private_key\": \"x\"}", "set oauth2.client_id"),
            ("{\"private_key\": \"x\", \"client_email\": \"a\"}", "has no RSA key in PEM"),
            (small, "fewer than the 2048 bits"),
        ] {
            try PrivateFile.replace(file, with: text)
            #expect {
                try room.output(privateKey: file) { $0.clientID = text == small ? "a" : "" }
            } throws: { "\($0)".contains(complaint) }
        }
        let good = try String(contentsOfFile: "\(room.keyFile).json", encoding: .utf8)
        try PrivateFile.replace(file, with: good)
        let output = try room.output(privateKey: file)
        try PrivateFile.replace(file, with: "nonsense")
        try await Task.sleep(for: .milliseconds(1_100))
        #expect(await output.send(try Sample.batch(1)) == .acknowledged)
    }

    @Test("Kafka's settings with a key that cannot sign are refused by check, as by the start")
    func kafkaKey() {
        var settings = DestinationSettings()
        settings.oauth2.grant = .jwtBearer
        settings.oauth2.tokenURL = EndpointURL("https://a/token")
        settings.oauth2.privateKey.file = "/key"
        settings.oauth2.clientID = "a"
        #expect(throws: OutputError.self) { try KafkaOptions(settings).check(Secret("nonsense")) }
    }

    /// An output to a receiver that nobody asks, with that token endpoint.
    private func output(_ bench: Bench, askingAt endpoint: ScriptedPeer) throws -> HTTPOutput {
        try bench.output(to: "http://127.0.0.1:1/") {
            $0.oauth2.tokenURL = EndpointURL(endpoint.url)
            $0.oauth2.clientID = "agent"
            $0.oauth2.secret.inline = Secret("a secret")
            $0.requestTimeout = .seconds(1)
        }
    }

    @Test("a token endpoint with Retry-After is left alone until then, and named")
    func endpointThatIsBusy() async throws {
        let bench = try Bench()
        let endpoint = try ScriptedPeer(nil) { connection in
            while connection.request() != nil {
                connection.write("HTTP/1.1 429 Slow\r\nRetry-After: 60\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { endpoint.stop() }
        guard
            case .retryAfter(.seconds(60), let failure) =
                await (try output(bench, askingAt: endpoint)).send(try Sample.batch(1))
        else {
            Issue.record("its Retry-After is not obeyed")
            return
        }
        #expect(failure.message.contains("the token endpoint answered 429"), "\(failure)")
    }

    @Test("a silent token endpoint is waited for up to request_timeout, and named")
    func silentEndpoint() async throws {
        let bench = try Bench()
        let endpoint = try ScriptedPeer(nil) { $0.hang() }
        defer { endpoint.stop() }
        let begin = SystemTime().bootTime
        let outcome = await (try output(bench, askingAt: endpoint)).send(try Sample.batch(1))
        #expect(retried(outcome)?.message.contains("cannot ask the token endpoint") == true, "\(outcome)")
        #expect(SystemTime().bootTime - begin < .seconds(9))
    }

    @Test(
        "an answer without a bearer token is not a token",
        arguments: [
            "", "{}", #"{"access_token": "x", "token_type": null}"#,
            #"{"access_token": "a b", "token_type": "bearer"}"#,
            #"{"access_token": "x", "token_type": "mac"}"#,
            #"{"access_token": 1, "token_type": "bearer"}"#,
            #"["access_token"]"#,
        ])
    func nonsense(answer: String) {
        #expect(AccessToken(answer: Array(answer.utf8)) == nil)
    }

    @Test("an answer without token_type is a bearer token")
    func withoutType() {
        let token = AccessToken(answer: Array(#"{"access_token": "x", "expires_in": 60}"#.utf8))
        #expect(token?.text.revealed == "x" && token?.lifetime == .seconds(60))
    }
}
