import EventLoops
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Credentials of AWS")
struct AWSTests {
    private func output(
        _ bench: Bench, _ server: S3Server, _ credentials: AWSSettings.Credentials,
        _ environment: [String: String] = [:], role: (arn: String, externalID: String?)? = nil
    ) throws -> S3Output {
        var options = HTTPOptions(url: server.url)
        options.settings.s3.bucket = "events"
        options.settings.s3.pathStyle = true
        options.settings.s3.aws = AWSTests.settings("secret/with+signs=")
        options.settings.s3.aws.credentials = credentials
        options.settings.s3.aws.assumeRole = role?.arn
        options.settings.s3.aws.externalID = role?.externalID
        var environment = environment
        environment["AWS_ENDPOINT_URL_STS"] = server.url
        return try S3Output(
            "archive", options, options.settings.s3, installID: "6e0dfba6", on: bench.loop,
            log: Log(bench.log),
            environment: { environment[$0] })
    }

    private static func settings(_ secret: String) -> AWSSettings {
        var settings = AWSSettings()
        settings.region = "eu-central-1"
        settings.accessKeyID = "AKIDEXAMPLE"
        settings.secret.inline = Secret(secret)
        return settings
    }

    @Test("a service account's token is exchanged for a role's credentials, once for many batches")
    func webIdentity() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let file = "\(bench.directory.path)/token"
        try PrivateFile.replace(file, with: "a.web.token\n")
        let output = try output(
            bench, server, .webIdentity,
            [
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/e", "AWS_WEB_IDENTITY_TOKEN_FILE": file,
            ])
        // Two at once: one of them asks, the other waits for it.
        async let first = output.send(try Sample.batch(1, number: 1))
        async let second = output.send(try Sample.batch(1, number: 2))
        #expect(try await [first, second] == [.acknowledged, .acknowledged])
        #expect(try await server.log().count { $0.path == "/" } == 1)
        #expect(
            try await server.log().allSatisfy { $0.path == "/" || $0.headers["x-amz-security-token"] != nil })
    }

    @Test("a batch is held if the token service refuses the token, with the reason")
    func refusedToken() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let file = "\(bench.directory.path)/token"
        try PrivateFile.replace(file, with: "another.token\n")
        let output = try output(
            bench, server, .webIdentity,
            [
                "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/e", "AWS_WEB_IDENTITY_TOKEN_FILE": file,
            ])
        let failure = held(await output.send(try Sample.batch(1)))
        #expect(failure?.message.contains("answered 403 InvalidIdentityToken") == true)
        #expect(failure?.message.contains("another.token") == false)
    }

    @Test("a role is assumed with the agent's key and the external id")
    func assumedRole() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let arn = "arn:aws:iam::123456789012:role/events"
        let right = try output(bench, server, .key, role: (arn, "the-external-id"))
        #expect(await right.send(try Sample.batch(1)) == .acknowledged)
        #expect(try await server.log().last?.headers["x-amz-security-token"] != nil)
        let wrong = try output(bench, server, .key, role: (arn, nil))
        #expect(held(await wrong.send(try Sample.batch(1)))?.message.contains("AccessDenied") == true)
    }

    @Test("credentials that expire under two concurrent requests are requested again once")
    func expiredAtOnce() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let arn = "arn:aws:iam::123456789012:role/events"
        let output = try output(bench, server, .key, role: (arn, "the-external-id"))
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        // Both are signed before either is answered.
        let expired = #"{"status": 400, "code": "ExpiredToken", "pair": true}"#
        try await server.fault("[\(expired), \(expired)]")
        async let first = output.send(try Sample.batch(1, number: 2))
        async let second = output.send(try Sample.batch(1, number: 3))
        for outcome in try await [first, second] { #expect(retried(outcome) != nil, "\(outcome)") }
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        #expect(try await server.log().count { $0.path == "/" } == 2)
    }

    @Test(
        "a container's role is requested with the token of the environment; plain HTTP stays on the machine")
    func container() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let end = SystemTime().wallTime + .seconds(3600)
        try await server.metadata(
            #"{"document": {"AccessKeyId": "ASIAROLE1", "SecretAccessKey": "role-secret-1", "Token": "t", "#
                + "\"Expiration\": \"\(end)\"}}")
        let url = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "\(server.url)/container"]
        let token = ["AWS_CONTAINER_AUTHORIZATION_TOKEN": "the-container's-token"]
        let right = try output(bench, server, .container, url.merging(token) { $1 })
        #expect(await right.send(try Sample.batch(1)) == .acknowledged)
        let wrong = try output(bench, server, .container, url)
        #expect(held(await wrong.send(try Sample.batch(1)))?.message.contains("answered 401") == true)
        #expect(throws: OutputError.self) {
            try output(
                bench, server, .container,
                ["AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/container"])
        }
    }

    @Test(
        "requests of type http are signed for their service, with bodies compressed or not",
        arguments: Compression.allCases)
    func signedHTTP(compression: Compression) async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        func output(_ secret: String) throws -> HTTPOutput {
            var options = HTTPOptions(url: "\(server.url)/es/_bulk?pipeline=events")
            options.settings.compression = compression
            options.settings.http.aws = AWSTests.settings(secret)
            return try HTTPOutput(
                "search", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log),
                time: ManualTime())
        }
        let right = try output("secret/with+signs=")
        let wrong = try output("wrong")
        #expect(await right.send(try Sample.batch(100)) == .acknowledged)
        #expect(held(await wrong.send(try Sample.batch(1)))?.status == 403)
    }

    @Test(
        "an unexplained refusal renews the credentials once, and the new ones at the earliest a minute later"
    )
    func refused() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        var settings = AWSTests.settings("secret/with+signs=")
        settings.assumeRole = "arn:aws:iam::123456789012:role/events"
        settings.externalID = "the-external-id"
        let signer = try AWSSigner(
            settings, service: "es", installID: nil, HTTPOptions(url: server.url), on: bench.loop,
            environment: { $0 == "AWS_ENDPOINT_URL_STS" ? server.url : nil })
        signer.use(Secret("secret/with+signs="))
        let time = ManualTime(wall: SystemTime().wallTime)
        let now = time.bootTime
        func signed() async throws -> HTTPRequest {
            var request = HTTPRequest(url: server.url, headers: [], body: [], answerLimit: 0)
            try await signer.authorize(&request, checksum: nil, time)
            return request
        }
        let first = try await signed()
        #expect(signer.renewRefused(first, isOver: false, at: now))
        let second = try await signed()
        #expect(second.signature != first.signature)
        #expect(!signer.renewRefused(second, isOver: false, at: now + .seconds(59)))
        #expect(try await signed().signature == second.signature)
        // Another request carried the first as well.
        #expect(signer.renewRefused(first, isOver: false, at: now + .seconds(60)))
        #expect(try await signed().signature == second.signature)
        #expect(signer.renewRefused(second, isOver: true, at: now))
        #expect(try await signed().signature != second.signature)
    }

    @Test("static credentials from the settings are not renewed")
    func refusedKey() async throws {
        let bench = try Bench()
        let signer = try AWSSigner(
            AWSTests.settings("x"), service: "es", installID: nil, HTTPOptions(url: "http://127.0.0.1:1"),
            on: bench.loop, environment: { _ in nil })
        signer.use(Secret("x"))
        let time = ManualTime()
        var request = HTTPRequest(url: "http://127.0.0.1:1", headers: [], body: [], answerLimit: 0)
        try await signer.authorize(&request, checksum: nil, time)
        #expect(!signer.renewRefused(request, isOver: true, at: time.bootTime + .seconds(3600)))
    }

    @Test("missing variables of the environment are named", arguments: AWSSettings.Credentials.allCases)
    func environment(credentials: AWSSettings.Credentials) async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let all = [
            "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ROLE_ARN": "arn:r",
            "AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_CONTAINER_CREDENTIALS_FULL_URI": server.url,
        ]
        let wanted: [AWSSettings.Credentials: Set<String>] = [
            .environment: ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
            .webIdentity: ["AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"],
            .container: ["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        ]
        _ = try output(bench, server, credentials, all)
        for missing in all.keys {
            let rest = all.filter { $0.key != missing }
            guard wanted[credentials]?.contains(missing) == true else {
                _ = try output(bench, server, credentials, rest)
                continue
            }
            let error = #expect(throws: OutputError.self) { try output(bench, server, credentials, rest) }
            #expect(error?.message.contains(missing) == true)
        }
    }
}
