import COpenSSL
import Digests
import EventLoops
import Glibc
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("TLS")
struct TLSTests {
    private func failure(
        _ bench: Bench, _ identity: CertificateAuthority.Identity, host: String = "127.0.0.1",
        _ change: (inout DestinationSettings) -> Void = { _ in }
    ) async throws -> Failure {
        let receiver = try bench.receiver { $0.identity = identity }
        let output = try bench.output(to: "https://\(host):\(receiver.port)/", change)
        let outcome = await output.send(try Sample.batch(5))
        #expect(receiver.stats.requests == 0)
        return try #require(retried(outcome))
    }

    @Test("a certificate for another name is refused, and the message says so")
    func wrongName() async throws {
        let bench = try Bench()
        let failure = try await failure(bench, bench.identity(names: ["DNS:elsewhere.test"]))
        #expect(failure.kind == .tls)
        #expect(failure.message.contains("for another name"), "\(failure.message)")
    }

    @Test("a certificate with the server only in its CN is refused, and accepted if that is configured")
    func commonNameOnly() async throws {
        let bench = try Bench()
        let identity = try bench.identity(names: [])
        let failure = try await failure(bench, identity, host: "localhost")
        #expect(failure.kind == .tls, "\(failure)")
        #expect(
            failure.message.contains(#"names the server in its CN only ("localhost")"#), "\(failure.message)")
        #expect(failure.message.contains("tls.allow_common_name = true"))
        let receiver = try bench.receiver { $0.identity = identity }
        let output = try bench.output(to: "https://localhost:\(receiver.port)/") {
            $0.tls.allowsCommonName = true
        }
        for number in 1...2 {
            #expect(await output.send(try Sample.batch(5, number: UInt64(number))) == .acknowledged)
        }
        // The CN is compared all the same.
        let elsewhere = try await self.failure(bench, identity) { $0.tls.allowsCommonName = true }
        #expect(elsewhere.kind == .tls && elsewhere.message.contains("for another name"), "\(elsewhere)")
    }

    @Test("a certificate that has expired is refused, and the message says so")
    func expired() async throws {
        let bench = try Bench()
        let failure = try await failure(bench, bench.identity(from: .seconds(-7200), until: .seconds(-3600)))
        #expect(failure.kind == .tls && failure.message.contains("has expired"))
    }

    @Test("a certificate that is not valid yet is refused, and the message says so")
    func notYetValid() async throws {
        let bench = try Bench()
        let failure = try await failure(bench, bench.identity(from: .seconds(3600)))
        #expect(failure.kind == .tls && failure.message.contains("not valid yet"))
    }

    @Test("an unknown authority is refused, and the message says which setting helps")
    func unknownAuthority() async throws {
        let bench = try Bench()
        let other = try CertificateAuthority(now: SystemTime().wallTime)
        let now = SystemTime().wallTime
        let identity = try other.issue(.init(notBefore: now - .seconds(60), notAfter: now + .seconds(3600)))
        let failure = try await failure(bench, identity)
        #expect(failure.kind == .tls && failure.message.contains("tls.ca_file"))
        // The system's authorities do not know it either.
        let systems = try await self.failure(bench, bench.identity()) { $0.tls.caFile = nil }
        #expect(systems.kind == .tls && systems.message.contains("tls.ca_file"))
    }

    @Test("a missing CA is named, and so is an expired certificate of the chain with its owner")
    func chains() async throws {
        let bench = try Bench()
        let now = SystemTime().wallTime
        func identity(of authority: CertificateAuthority) throws -> CertificateAuthority.Identity {
            try authority.issue(.init(notBefore: now - .seconds(60), notAfter: now + .seconds(3600)))
        }
        let stranger = try await failure(
            bench, identity(of: CertificateAuthority(now: now, commonName: "An Intermediate")))
        #expect(
            stranger.message
                == "the certificate of 127.0.0.1 is from an unknown CA, \"An Intermediate\": name it in tls.ca_file;"
                + " if the CA above it is there, the server does not send its intermediate certificate")
        let past = try CertificateAuthority(
            now: now - .seconds(3660 * 86_400), commonName: "An Old\u{1B} Root")
        let file = "\(bench.directory.path)/old.pem"
        try PrivateFile.replace(file, with: past.certificate)
        let old = try await failure(bench, identity(of: past)) { $0.tls.caFile = file }
        #expect(
            old.message
                == "the certificate of 127.0.0.1 depends on \"An Old Root\", which is trusted here (tls.ca_file) and has"
                + " expired: replace it")
        var verdict = shim_openssl_verdict()
        (verdict.error, verdict.depth) = (X509_V_ERR_CERT_HAS_EXPIRED, 1)
        #expect(TransferFailure.verification(verdict, "a", "").contains("depends on the intermediate"))
        verdict.error = X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT
        #expect(!TransferFailure.verification(verdict, "a", "").contains("send"))
    }

    @Test("plain HTTP where TLS is expected is a TLS failure")
    func noTLSThere() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.identity = nil }
        let outcome = try await bench.output(to: "https://127.0.0.1:\(receiver.port)/").send(
            try Sample.batch(5))
        #expect(retried(outcome)?.kind == .tls)
    }

    @Test("a destination that requires a client certificate gets one, and refuses clients without")
    func clientCertificates() async throws {
        let bench = try Bench()
        let client = try bench.identity(names: [], isClient: true)
        let certificate = "\(bench.directory.path)/client.pem"
        let key = "\(bench.directory.path)/client.key"
        try PrivateFile.replace(certificate, with: client.certificate)
        try PrivateFile.replace(key, with: client.key)
        let peer = try ScriptedPeer(bench.identity(), clientAuthority: bench.authority.certificate) {
            connection in
            while connection.request() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        #expect(try await bench.output(to: peer.url).send(try Sample.batch(5)) != .acknowledged)
        let output = try bench.output(to: peer.url) {
            $0.tls.certificateFile = certificate
            $0.tls.keyFile = key
        }
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        let expiry = try #require(await output.certificates.ownExpiry)
        #expect(abs((expiry - (SystemTime().wallTime + .seconds(86_400))).components.seconds) < 60)
    }

    @Test(
        "mTLS: a server that requires another client certificate is reported, by its alert or its disconnect"
    )
    func whatTheServerThinksOfOurCertificate() async throws {
        let bench = try Bench()
        let stranger = try CertificateAuthority(now: SystemTime().wallTime)
        let now = SystemTime().wallTime
        let client = try stranger.issue(
            .init(notBefore: now - .seconds(60), notAfter: now + .seconds(3600), isClient: true))
        let certificate = "\(bench.directory.path)/client.pem"
        let key = "\(bench.directory.path)/client.key"
        try PrivateFile.replace(certificate, with: client.certificate)
        try PrivateFile.replace(key, with: client.key)
        let peer = try ScriptedPeer(bench.identity(), clientAuthority: bench.authority.certificate) {
            $0.hang()
        }
        defer { peer.stop() }
        // TLS 1.3 tells late, and the kernel may be faster than the alert and say only that the connection was reset: of several
        // attempts most must name the cause, and none may say something else.
        var told = 0
        func judge(_ failure: Failure, names words: [String]) {
            if failure.kind == .tls, words.contains(where: { failure.message.contains($0) }) {
                return told += 1
            }
            #expect(failure.message.contains("broke before an answer arrived"), "\(failure.message)")
        }
        for _ in 0..<10 {
            let none = try #require(retried(await bench.output(to: peer.url).send(try Sample.batch(5))))
            judge(none, names: ["client certificate"])
            #expect(none.message.contains("client certificate"), "\(none.message)")
            let other = try bench.output(to: peer.url) {
                $0.tls.certificateFile = certificate
                $0.tls.keyFile = key
            }
            let refused = try #require(retried(await other.send(try Sample.batch(5))))
            judge(refused, names: ["unknown ca", "accept the agent's"])
        }
        #expect(told >= 10, "\(told) of 20 named the cause")
    }

    @Test("the expiry of the server's own certificate is known after the first answer")
    func serverExpiry() async throws {
        let bench = try Bench()
        let identity = try bench.identity(until: .seconds(7200))
        let receiver = try bench.receiver { $0.identity = identity }
        let output = try bench.output(to: receiver.url)
        #expect(await output.certificates.serverExpiry == nil)
        for _ in 0..<2 {
            #expect(await output.send(try Sample.batch(5)) == .acknowledged)
            let expiry = try #require(await output.certificates.serverExpiry)
            #expect(abs((expiry - (SystemTime().wallTime + .seconds(7200))).components.seconds) < 60)
        }
    }

    @Test("a wrong pinned key is refused, and the message says what to do")
    func pins() async throws {
        let bench = try Bench()
        let identity = try bench.identity()
        let pin = try pinOf(identity)
        let receiver = try bench.receiver { $0.identity = identity }
        let other = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
        let output = try bench.output(to: receiver.url) { $0.tls.pinnedKeys = [other, pin] }
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        let failure = try await failure(bench, identity) { $0.tls.pinnedKeys = [other] }
        #expect(failure.kind == .tls && failure.message.contains("pinned_keys"))
    }

    @Test("a renewed ca_file is used without a restart; an invalid one leaves the last good one in force")
    func fault23_authoritiesAreReadAgain() async throws {
        let bench = try Bench()
        let time = ManualTime()
        let other = try CertificateAuthority(now: SystemTime().wallTime)
        let now = SystemTime().wallTime
        let renewed = try other.issue(
            .init(names: ["IP:127.0.0.1"], notBefore: now - .seconds(60), notAfter: now + .seconds(3600)))
        let old = try bench.receiver()
        let new = try bench.receiver { $0.identity = renewed }
        func output(_ url: String) throws -> HTTPOutput {
            var options = HTTPOptions(url: url)
            options.settings.tls.caFile = bench.caFile
            return try HTTPOutput(
                "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: time)
        }
        let toOld = try output(old.url)
        let toNew = try output(new.url)
        #expect(await toOld.send(try Sample.batch(5)) == .acknowledged)
        #expect(retried(await toNew.send(try Sample.batch(5)))?.kind == .tls)

        // Garbage: everything goes on as it was, and one warning says why.
        try PrivateFile.replace(bench.caFile, with: "not a certificate\n")
        for _ in 0..<3 {
            time.advance(by: .seconds(2))
            #expect(await toOld.send(try Sample.batch(5)) == .acknowledged)
        }
        #expect(await toOld.certificates.failedReloads == 1)
        #expect(bench.log.messages.filter { $0.level == .warning }.count == 1)

        // Gone: the same.
        unlink(bench.caFile)
        time.advance(by: .seconds(2))
        #expect(await toOld.send(try Sample.batch(5)) == .acknowledged)

        // The new authority: its server is trusted now, and the old one's no more, in spite of kept connections.
        try PrivateFile.replace(bench.caFile, with: other.certificate)
        time.advance(by: .seconds(2))
        #expect(await toNew.send(try Sample.batch(5)) == .acknowledged)
        #expect(retried(await toOld.send(try Sample.batch(5)))?.kind == .tls)
    }

    @Test("a renewed client certificate is used once its key is there too, not before")
    func fault23_clientCertificatesAreReadAgain() async throws {
        let bench = try Bench()
        let time = ManualTime()
        let certificate = "\(bench.directory.path)/client.pem"
        let key = "\(bench.directory.path)/client.key"
        func place(_ identity: CertificateAuthority.Identity, certificateOnly: Bool = false) throws {
            try PrivateFile.replace(certificate, with: identity.certificate)
            if !certificateOnly { try PrivateFile.replace(key, with: identity.key) }
        }
        let other = try CertificateAuthority(now: SystemTime().wallTime)
        let now = SystemTime().wallTime
        let foreign = try other.issue(
            .init(names: [], notBefore: now - .seconds(60), notAfter: now + .seconds(600), isClient: true))
        try place(foreign)
        let peer = try ScriptedPeer(bench.identity(), clientAuthority: bench.authority.certificate) {
            connection in
            while connection.request() != nil {
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
        defer { peer.stop() }
        var options = HTTPOptions(url: peer.url)
        options.settings.tls.caFile = bench.caFile
        options.settings.tls.certificateFile = certificate
        options.settings.tls.keyFile = key
        let output = try HTTPOutput(
            "main", options, format: NDJSONEncoder(), on: bench.loop, log: Log(bench.log), time: time)
        #expect(await output.send(try Sample.batch(5)) != .acknowledged)

        let good = try bench.identity(names: [], isClient: true)
        try place(good, certificateOnly: true)
        time.advance(by: .seconds(2))
        #expect(await output.send(try Sample.batch(5)) != .acknowledged)
        #expect(
            bench.log.messages.contains { $0.fields.contains { $0.value.contains("does not belong to") } })
        try place(good)
        time.advance(by: .seconds(2))
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
    }

    @Test(
        "invalid settings are refused with the reason",
        arguments: [
            ("https://user:secret@host/", "settings user and password"), ("ftp://host/", "https://host/path"),
            ("http://example.org/", "plain http"), ("not an address at all", "https://host/path"),
        ])
    func badAddresses(url: String, word: String) throws {
        let bench = try Bench()
        let error = #expect(throws: OutputError.self) { try bench.output(to: url) }
        #expect(error?.message.contains(word) == true && error?.message.contains("secret") == false)
    }

    @Test("plain HTTP is allowed to loopback, under all its names, and elsewhere only by setting")
    func plainHTTP() throws {
        let bench = try Bench()
        for host in ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"] {
            _ = try bench.output(to: "http://\(host)/")
        }
        for host in ["128.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "[::2]", "0.0.0.0"] {
            #expect(throws: OutputError.self) { try bench.output(to: "http://\(host)/") }
        }
        _ = try bench.output(to: "http://collector.internal/") { $0.allowPlainHTTP = true }
    }

    @Test("files that are not certificates are refused at once")
    func badSettings() throws {
        let bench = try Bench()
        let url = "https://127.0.0.1/"
        let changes: [(inout DestinationSettings) -> Void] = [
            { $0.tls.caFile = "/etc/hostname" }, { $0.tls.caFile = "/nonexistent" },
            { $0.tls.caFile = "/dev/zero" },
            { $0.tls.keyFile = "/nonexistent" },
        ]
        for change in changes { #expect(throws: OutputError.self) { try bench.output(to: url, change) } }
    }

    private func pinOf(_ identity: CertificateAuthority.Identity) throws -> String {
        let memory = try #require(shim_openssl_copy(identity.certificate, identity.certificate.utf8.count))
        defer { BIO_free(memory) }
        let certificate = try #require(PEM_read_bio_X509(memory, nil, nil, nil))
        defer { X509_free(certificate) }
        var der: UnsafeMutablePointer<UInt8>?
        let size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der)
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        EVP_Digest(der, Int(size), &digest, &count, EVP_sha256(), nil)
        shim_openssl_free(der)
        return "sha256//\(Base64.encode(digest))"
    }
}
