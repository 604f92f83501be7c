import EventLoops
import Foundation
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

/// The broker tansu behind TLS and SCRAM: see Fixtures/kafka_secure.py.
@Suite("Kafka over TLS with a password")
struct KafkaSecureTests {
    /// Fronts: 0 and 3 are as they should be, 1 has a certificate for another name, 2 wants a certificate of the client. The reader is at 0.
    private struct Stage {
        let bench: Bench
        let server: PythonServer

        init(_ words: String...) async throws {
            bench = try Bench()
            let path = bench.directory.path
            for (file, names) in [
                ("good", ["DNS:localhost", "IP:127.0.0.1"]), ("other", ["DNS:kafka.example.com"]),
            ] {
                let identity = try bench.identity(names: names)
                try PrivateFile.replace("\(path)/\(file).pem", with: identity.certificate)
                try PrivateFile.replace("\(path)/\(file).key", with: identity.key)
            }
            func front(_ file: String) -> [String] { ["--front", "\(path)/\(file).pem,\(path)/\(file).key"] }
            var words =
                [path, "\(path)/ports", "--ca", bench.caFile, "--user", "shop", "--password", "s3cret"]
                + words
            words += front("good") + front("other")
            words += ["--front", "\(path)/good.pem,\(path)/good.key,\(bench.caFile)"] + front("good")
            server = try await PythonServer("kafka_secure.py", words, portFile: "\(path)/ports")
        }

        func output(
            _ front: Int = 0, password: String = "s3cret", _ mechanism: KafkaMechanism = .scramSHA512,
            _ change: (inout DestinationSettings) throws -> Void = { _ in }
        ) throws -> KafkaOutput {
            var settings = DestinationSettings(kafka: ["localhost:\(server.ports[front])"])
            settings.kafka.mechanism = mechanism
            settings.logIn("shop", .inline(Secret(password)))
            settings.tls.caFile = bench.caFile
            try change(&settings)
            return try KafkaOutput("main", KafkaOptions(settings), on: bench.loop, log: Log(bench.log))
        }

        /// Whether all of a batch is taken, in the end: a broker that has only just started is not always there at once.
        func takes(_ output: KafkaOutput, _ batch: Batch) async -> Bool {
            await eventually { await output.send(batch) == .acknowledged }
        }

        var clients: String { text(of: "\(bench.directory.path)/clients") }
        var records: [Substring] { text(of: "\(bench.directory.path)/records").split(separator: "\n") }

        /// A failure that is tried again for TLS's sake.
        func refusal(_ front: Int, _ change: (inout DestinationSettings) -> Void = { _ in }) async throws
            -> Failure
        {
            func connection(_ connectTimeout: Duration = .seconds(10)) throws -> KafkaOutput {
                try output(front) {
                    $0.connectTimeout = connectTimeout
                    // A name may have several addresses, of which only one is listened at.
                    $0.kafka.brokers = ["127.0.0.1:\(server.ports[front])"]
                    change(&$0)
                }
            }
            let outcome = await (try connection()).send(try Sample.batch(3))
            let failure = try #require(retried(outcome), "\(outcome)")
            #expect(failure.kind == .tls && failure.message.contains("TLS failed"), "\(failure.message)")
            // As `check --connect` does it, with a connection of its own: the library waits longer and longer before it tries
            // one again that failed. Where a busy machine does not answer in time, that is what it says. With a reason at hand
            // it does not wait for all of `connectTimeout`.
            let start = ContinuousClock.now
            var said: [String] = []
            let isNamed = try await eventually {
                said.append(await (try connection(.seconds(60))).probe()?.message ?? "")
                return said.last?.contains("TLS failed") == true
            }
            #expect(isNamed, "\(said), \(clients)")
            #expect(ContinuousClock.now - start < .seconds(50))
            return failure
        }
    }

    @Test(
        "records arrive over TLS with SCRAM, and the broker's name is verified",
        arguments: [KafkaMechanism.scramSHA512, .scramSHA256])
    func scram(mechanism: KafkaMechanism) async throws {
        let stage = try await Stage()
        let output = try stage.output(0, mechanism)
        #expect(await eventually { await output.probe() == nil })
        #expect(
            await eventually {
                await output.send((try? Sample.batch(200)) ?? Sample.batch([])) == .acknowledged
            })
        #expect(await eventually { stage.records.count == 200 })
        #expect(stage.clients.contains(#""mechanism": "\#(mechanism.rawValue)""#))
        #expect(stage.clients.contains(#""name": "localhost""#))
        #expect(!stage.clients.contains("failed"), "\(stage.clients)")
    }

    @Test("a wrong password and an unsupported mechanism hold the destination, and no record arrives")
    func refused() async throws {
        let stage = try await Stage()
        for (output, words) in [
            (try stage.output(password: "wrong"), "refuse these credentials"),
            (try stage.output(0, .plain), "mechanism"),
        ] {
            let outcome = await output.send(try Sample.batch(3))
            guard case .held(let failure) = outcome else {
                Issue.record("not held: \(outcome)")
                continue
            }
            #expect(
                failure.message.contains(words) && !failure.message.contains("wrong"), "\(failure.message)")
            #expect(await eventually { await output.probe()?.message.contains(words) == true })
        }
        #expect(stage.records.isEmpty)
    }

    @Test("a broker with an unknown authority is retried with the reason, and never sees user or events")
    func strangeAuthority() async throws {
        let stage = try await Stage()
        let other = try CertificateAuthority(now: SystemTime().wallTime)
        let file = "\(stage.bench.directory.path)/other-ca.pem"
        try PrivateFile.replace(file, with: other.certificate)
        let failure = try await stage.refusal(3) { $0.tls.caFile = file }
        #expect(failure.words?.contains("certificate verify failed") == true, "\(failure.excerpt)")
        let seen = stage.clients.split(separator: "\n").filter { $0.contains("\(stage.server.ports[3])") }
        #expect(!seen.isEmpty && seen.allSatisfy { $0.contains("failed") }, "\(seen)")
        #expect(stage.records.isEmpty)
    }

    @Test("a certificate for another name is retried with the reason")
    func otherName() async throws {
        let stage = try await Stage()
        let failure = try await stage.refusal(1)
        #expect(failure.words?.contains("certificate verify failed") == true, "\(failure.excerpt)")
        #expect(stage.records.isEmpty)
    }

    @Test("a broker that requires a client certificate gets the configured one; without it there is a retry")
    func clientCertificate() async throws {
        let stage = try await Stage()
        let path = stage.bench.directory.path
        let identity = try stage.bench.identity(names: ["DNS:shop-agent"], isClient: true)
        try PrivateFile.replace("\(path)/client.pem", with: identity.certificate)
        try PrivateFile.replace("\(path)/client.key", with: identity.key)
        let shown = try stage.output(2) {
            $0.tls.certificateFile = "\(path)/client.pem"
            $0.tls.keyFile = "\(path)/client.key"
        }
        #expect(await eventually { await shown.probe() == nil }, "\(stage.clients)")
        let port = stage.server.ports[2]
        #expect(await eventually { stage.clients.contains(#""port": \#(port), "name""#) }, "\(stage.clients)")
        let outcome = await (try stage.output(2)).send(try Sample.batch(3))
        #expect(retried(outcome) != nil, "\(outcome)")
        #expect(stage.clients.contains(#""port": \#(port), "failed""#), "\(stage.clients)")
    }

    /// Brokers that take access tokens, and the server that issues them.
    private struct TokenStage {
        let issuer: PythonServer
        let stage: Stage
        let time = ManualTime(wall: SystemTime().wallTime)

        init() async throws {
            let directory = try TemporaryDirectory()
            let file = "\(directory.path)/oauth-port"
            issuer = try await PythonServer("oauth_server.py", [file], portFile: file)
            stage = try await Stage("--tokens", "http://127.0.0.1:\(issuer.port)/events")
        }

        func output(secret: String = "a secret: with+signs", idleTime: Duration) throws -> KafkaOutput {
            var settings = DestinationSettings(kafka: ["localhost:\(stage.server.ports[0])"])
            settings.oauth2.tokenURL = EndpointURL("http://127.0.0.1:\(issuer.port)/token")
            settings.oauth2.clientID = "agent"
            settings.oauth2.scope = "events.write"
            settings.oauth2.secret.inline = Secret(secret)
            settings.tls.caFile = stage.bench.caFile
            var options = KafkaOptions(settings)
            options.idleTime = idleTime
            return try KafkaOutput(
                "main", options, on: stage.bench.loop, log: Log(stage.bench.log), time: time)
        }

        func steer(_ what: String, _ body: String = "") async throws {
            _ = try await issuer.steer(.put, what, body, on: stage.bench.loop)
        }

        func tokenRequests() async throws -> Int {
            let log = try await issuer.steer(.get, "log", on: stage.bench.loop)
            return String(decoding: log, as: UTF8.self).components(separatedBy: "/token").count - 1
        }
    }

    @Test("OAUTHBEARER shows an access token; a producer that would outlive its token gets no more records")
    func tokens() async throws {
        let room = try await TokenStage()
        try await room.steer("lifetime", "3600")
        let output = try room.output(idleTime: .seconds(600))
        #expect(await eventually { await output.probe() == nil })
        #expect(await room.stage.takes(output, try Sample.batch(100)))
        #expect(try await room.tokenRequests() == 1)
        #expect(room.stage.clients.contains(#""mechanism": "OAUTHBEARER""#))
        // The next token is short: the library asks for another one after 8 s by its own clock.
        try await room.steer("lifetime", "10")
        room.time.advance(by: .seconds(3600))
        #expect(await room.stage.takes(output, try Sample.batch(100, number: 2)))
        let asked = try await room.tokenRequests()
        #expect(asked >= 2)
        #expect(await eventually { await !output.isAwake }, "the library asks for another token after 8 s")
        room.time.advance(by: .seconds(8))
        #expect(await room.stage.takes(output, try Sample.batch(100, number: 3)))
        #expect(try await room.tokenRequests() > asked)
        #expect(await eventually { room.stage.records.count >= 300 })
    }

    @Test("a token that brokers refuse is renewed; if they refuse the next one too, the destination is held")
    func revokedToken() async throws {
        let room = try await TokenStage()
        let output = try room.output(idleTime: .zero)
        #expect(await room.stage.takes(output, try Sample.batch(1)))
        #expect(await eventually { await !output.isAwake })
        try await room.steer("revoke")
        #expect(retried(await output.send(try Sample.batch(1, number: 2))) != nil)
        #expect(await room.stage.takes(output, try Sample.batch(1, number: 2)))
        #expect(try await room.tokenRequests() == 2)
        #expect(await eventually { await !output.isAwake })
        try await room.steer("revoke")
        let failure = try #require(held(await output.send(try Sample.batch(1, number: 3))))
        #expect(failure.message.contains("refuse these credentials"), "\(failure.message)")
        room.time.advance(by: .seconds(60))
        #expect(retried(await output.send(try Sample.batch(1, number: 3))) != nil)
        #expect(await room.stage.takes(output, try Sample.batch(1, number: 3)))
        #expect(try await room.tokenRequests() == 3)
    }

    @Test("a client that the token endpoint refuses holds the destination before any broker is asked")
    func refusedClient() async throws {
        let room = try await TokenStage()
        let output = try room.output(secret: "wrong", idleTime: .zero)
        let failure = try #require(held(await output.send(try Sample.batch(1))))
        #expect(
            failure.message.contains("the token endpoint answered 401 invalid_client"), "\(failure.message)")
        #expect(await output.probe() == failure)
        #expect(!room.stage.clients.contains("OAUTHBEARER"))
    }

    @Test("a broker that accepts the client without knowing the password is not trusted")
    func impostor() async throws {
        let stage = try await Stage("--impostor")
        let outcome = await (try stage.output()).send(try Sample.batch(3))
        #expect(outcome != .acknowledged)
        #expect(stage.records.isEmpty)
    }
}
