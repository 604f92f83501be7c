import EventLoops
import Glibc
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Secrets")
struct SecretTests {
    @Test("a token file is read again when it changes; an unusable one leaves the last token in force")
    func tokensAreReadAgain() async throws {
        let bench = try Bench()
        let time = ManualTime()
        let file = "\(bench.directory.path)/token"
        try PrivateFile.replace(file, with: "first-secret\n")
        let heads = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                heads.note(head)
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        var options = HTTPOptions(url: peer.url)
        options.settings.tls.caFile = bench.caFile
        options.settings.token.file = file
        let output = try HTTPOutput(
            "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: time)
        _ = await output.send(try Sample.batch(1))
        #expect(heads.last.contains("\r\nAuthorization: Bearer first-secret\r\n"))
        #expect(heads.last.contains("\r\nIdempotency-Key: 01930000-0000-7000-0000-000000000001\r\n"))
        #expect(heads.last.contains("\r\nContent-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\n"))
        #expect(!heads.last.contains("Expect:"))
        for (content, expected) in [
            ("second-secret", "second-secret"), ("", "second-secret"), ("two\nlines\n", "second-secret"),
            ("third-secret\r\n", "third-secret"),
        ] {
            try PrivateFile.replace(file, with: content)
            time.advance(by: .seconds(2))
            _ = await output.send(try Sample.batch(1))
            #expect(heads.last.contains("Authorization: Bearer \(expected)\r\n"))
        }
        unlink(file)
        time.advance(by: .seconds(2))
        _ = await output.send(try Sample.batch(1))
        #expect(heads.last.contains("Authorization: Bearer third-secret\r\n"))
        let logged = bench.log.messages.map { "\($0)" }.joined()
        for word in ["first", "second", "third", "two"] { #expect(!logged.contains(word)) }
        #expect(logged.contains("is empty"))
    }

    @Test("an unusable certificate file does not block a new token, and each problem is logged once")
    func tokenBesideBrokenCertificates() async throws {
        let bench = try Bench()
        let time = ManualTime()
        let file = "\(bench.directory.path)/token"
        let authority = "\(bench.directory.path)/followed.pem"
        try PrivateFile.replace(file, with: "first-secret\n")
        try PrivateFile.replace(authority, with: bench.authority.certificate)
        let heads = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                heads.note(head)
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        var options = HTTPOptions(url: peer.url)
        options.settings.tls.caFile = authority
        options.settings.token.file = file
        let output = try HTTPOutput(
            "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: time)
        _ = await output.send(try Sample.batch(1))
        try PrivateFile.replace(authority, with: "garbage")
        try PrivateFile.replace(file, with: "second-secret\n")
        for _ in 0..<3 {
            time.advance(by: .seconds(2))
            _ = await output.send(try Sample.batch(1))
        }
        #expect(heads.last.contains("Authorization: Bearer second-secret\r\n"))
        let complaints = bench.log.messages.filter { "\($0)".contains("changed file not used") }
        #expect(complaints.count == 1, "\(complaints)")
    }

    @Test("an answer that quotes the request shows none of its secrets, nor those of the address")
    func quotedSecrets() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (head, _) = connection.request() {
                connection.write("HTTP/1.1 401 No\r\nContent-Length: \(head.utf8.count)\r\n\r\n\(head)")
            }
        }
        defer { peer.stop() }
        var options = HTTPOptions(url: "\(peer.url)?api_key=secret-in-the-address")
        options.settings.tls.caFile = bench.caFile
        options.settings.logIn("Aladdin", .inline(Secret("open sesame")))
        options.settings.headers = ["X-Key": Secret("secret-of-a-header")]
        let output = try HTTPOutput(
            "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: ManualTime())
        guard case .held(let failure) = await output.send(try Sample.batch(1)) else {
            Issue.record("it was to be held")
            return
        }
        #expect(
            failure.excerpt.contains("api_key=**** HTTP") && failure.excerpt.contains("Idempotency-Key: 0193")
        )
        for secret in ["secret-", "QWxhZGRpbjpvcGVuIHNlc2FtZQ", "sesame"] {
            #expect(!failure.excerpt.contains(secret))
        }
    }

    @Test("Basic credentials and a destination's own headers are sent")
    func otherAuthorizations() throws {
        var options = HTTPOptions(url: "https://127.0.0.1/")
        let secret = Secret("open sesame")
        options.settings.logIn("Aladdin", .inline(secret))
        let bearer = TokenPlace.authorization(scheme: "Bearer")
        #expect(
            try options.credential(secret, in: bearer)
                == .header("Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="))
        options.settings = DestinationSettings()
        options.settings.token.inline = secret
        #expect(try options.credential(secret, in: bearer) == .header("Authorization: Bearer open sesame"))
        #expect(
            try options.credential(secret, in: .header("App-Secret")) == .header("App-Secret: open sesame"))
        #expect(try options.credential(secret, in: .argument("key")) == .argument("key=open%20sesame"))
        options.settings.http.tokenScheme = "ApiKey"
        #expect(try options.credential(secret, in: bearer) == .header("Authorization: ApiKey open sesame"))
        #expect(throws: OutputError.self) { try options.credential(Secret("a\r\nb"), in: bearer) }
    }

    @Test("systemd's credentials are found by name")
    func credentials() throws {
        let directory = try TemporaryDirectory()
        try PrivateFile.replace("\(directory.path)/token", with: "from systemd")
        var provider = try SecretProvider(.credential("token"), credentialsDirectory: directory.path)
        try provider.refresh()
        #expect(provider.current == Secret("from systemd"))
        let error = #expect(throws: OutputError.self) {
            try SecretProvider(.credential("token"), credentialsDirectory: nil)
        }
        #expect(error?.message.contains("LoadCredential=token") == true)
    }

    @Test("ac24: however a secret is converted to text, it is not shown")
    func ac24_secretsDoNotShow() {
        let secret = Secret("hunter2-hunter2")
        var options = HTTPOptions(url: "https://127.0.0.1/")
        options.settings.token.inline = secret
        options.settings.proxy = EndpointURL("http://user:hunter2-hunter2@proxy")
        options.settings.headers = ["X-Key": secret]
        var dumped = ""
        dump(options, to: &dumped)
        let texts = [
            "\(secret)", String(reflecting: secret), "\(options)", String(reflecting: options), dumped,
        ]
        for text in texts { #expect(!text.contains("hunter2")) }
    }

    @Test("no failure shows a secret")
    func failuresDoNotShowSecrets() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            guard let (head, _) = connection.request() else { return }
            _ = head
            connection.write("HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno")
        }
        defer { peer.stop() }
        for url in [peer.url, "https://127.0.0.1:1/", "https://127.0.0.1:\(peer.port)/?q=1"] {
            let output = try bench.output(to: url) {
                $0.token.inline = Secret("hunter2")
                $0.headers = ["X-Key": Secret("hunter2")]
                if url.hasSuffix(":1/") { $0.proxy = EndpointURL("http://u:hunter2@127.0.0.1:1") }
            }
            #expect(!"\(await output.send(try Sample.batch(1)))".contains("hunter2"))
        }
    }
}
