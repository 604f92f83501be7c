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
        _ bench: Bench, _ server: S3Server, _ source: AWSOptions.Source, role: AWSOptions.Role? = nil
    ) throws -> S3Output {
        var aws = AWSOptions(region: "eu-central-1", service: "s3", source: source)
        aws.role = role
        aws.tokenService = server.url
        var options = S3Options(bucket: "events", endpoint: server.url, aws: aws)
        options.usesPathStyle = true
        options.http.proxy = .none
        return try S3Output("archive", options, installID: "6e0dfba6", on: bench.loop, log: Log(bench.log))
    }

    private let key = AWSOptions.Source.key(id: "AKIDEXAMPLE", secret: .inline(Secret("secret/with+signs=")))

    @Test("a service account's token is exchanged for a role's credentials, once for many batches")
    func webIdentity() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let file = "\(bench.directory.path)/token"
        try PrivateFile.replace(file, with: "a.web.token\n")
        let output = try output(bench, server, .webIdentity(role: "arn:aws:iam::123456789012:role/e", tokenFile: file))
        // Two at once: one of them asks, the other waits for it.
        async let first = output.send(try Sample.batch(1, number: 1))
        async let second = output.send(try Sample.batch(1, number: 2))
        #expect(try await [first, second] == [.acknowledged, .acknowledged])
        #expect(try await server.log().count { $0.path == "/" } == 1)
        #expect(try await server.log().allSatisfy { $0.path == "/" || $0.headers["x-amz-security-token"] != nil })
    }

    @Test("a token that the token service refuses holds the batch, and says why")
    func refusedToken() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let file = "\(bench.directory.path)/token"
        try PrivateFile.replace(file, with: "another.token\n")
        let output = try output(bench, server, .webIdentity(role: "arn:aws:iam::123456789012:role/e", tokenFile: file))
        let failure = held(await output.send(try Sample.batch(1)))
        #expect(failure?.message.contains("answered 403 InvalidIdentityToken") == true)
        #expect(failure?.message.contains("another.token") == false)
    }

    @Test("a role is taken on with the agent's key and the external id")
    func assumedRole() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        let arn = "arn:aws:iam::123456789012:role/events"
        let right = try output(bench, server, key, role: AWSOptions.Role(arn: arn, externalID: "the-external-id"))
        #expect(await right.send(try Sample.batch(1)) == .acknowledged)
        #expect(try await server.log().last?.headers["x-amz-security-token"] != nil)
        let wrong = try output(bench, server, key, role: AWSOptions.Role(arn: arn))
        #expect(held(await wrong.send(try Sample.batch(1)))?.message.contains("AccessDenied") == true)
    }

    @Test("a container's role: the token of the environment goes along, and plain HTTP stays on the machine")
    func container() async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        try await server.metadata(
            #"{"document": {"AccessKeyId": "ASIAROLE1", "SecretAccessKey": "role-secret-1", "Token": "t", "#
                + #""Expiration": "2099-01-01T00:00:00Z"}}"#)
        let url = "\(server.url)/container"
        let right = try output(bench, server, .container(url: url, token: .inline(Secret("the-container's-token"))))
        #expect(await right.send(try Sample.batch(1)) == .acknowledged)
        let wrong = try output(bench, server, .container(url: url, token: nil))
        #expect(held(await wrong.send(try Sample.batch(1)))?.message.contains("answered 401") == true)
        #expect(throws: OutputError.self) {
            try output(bench, server, .container(url: "http://192.0.2.1/container", token: nil))
        }
    }

    @Test("requests of type http are signed for their service, bodies packed or not", arguments: Compression.allCases)
    func signedHTTP(compression: Compression) async throws {
        let bench = try Bench()
        let server = try await S3Server(bench)
        func output(_ secret: String) throws -> HTTPOutput {
            var options = HTTPOptions(url: "\(server.url)/es/_bulk?pipeline=events")
            options.proxy = .none
            options.compression = compression
            options.authorization = .aws(
                AWSOptions(
                    region: "eu-central-1", service: "es",
                    source: .key(id: "AKIDEXAMPLE", secret: .inline(Secret(secret)))))
            return try HTTPOutput(
                "search", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: SystemTime())
        }
        let right = try output("secret/with+signs=")
        let wrong = try output("wrong")
        #expect(await right.send(try Sample.batch(100)) == .acknowledged)
        #expect(held(await wrong.send(try Sample.batch(1)))?.status == 403)
    }

    @Test("what the environment says: each kind of credentials, and what is missing")
    func environment() throws {
        let all = [
            "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token",
            "AWS_ROLE_ARN": "arn:r", "AWS_WEB_IDENTITY_TOKEN_FILE": "/t",
            "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "c",
        ]
        #expect(
            try AWSOptions.Source.environment { all[$0] }
                == .session(id: "id", secret: Secret("secret"), token: Secret("token")))
        #expect(try AWSOptions.Source.webIdentity { all[$0] } == .webIdentity(role: "arn:r", tokenFile: "/t"))
        #expect(
            try AWSOptions.Source.container { all[$0] }
                == .container(url: "http://169.254.170.2/v2/x", token: .inline(Secret("c"))))
        for missing in all.keys where missing != "AWS_SESSION_TOKEN" && missing != "AWS_CONTAINER_AUTHORIZATION_TOKEN" {
            let rest = all.filter { $0.key != missing }
            #expect(throws: OutputError.self, "\(missing)") {
                _ = try AWSOptions.Source.environment { rest[$0] }
                _ = try AWSOptions.Source.webIdentity { rest[$0] }
                _ = try AWSOptions.Source.container { rest[$0] }
            }
        }
    }
}
