import EventLoops
import Model
import Outputs
import Receiver
import TestKit
import Testing

@Suite("Container documents, fetched")
struct DocumentFetcherTests {
    @Test("a web page is not a document, and reported as such; nor is a truncated document")
    func noDocuments() async throws {
        let bench = try Bench()
        for (answer, words) in [
            (
                "Content-Length: 21\r\n\r\n<!doctype html><html>",
                "this is a web page: a login page, portal or proxy"
            ),
            ("Content-Length: 3\r\n\r\n\u{1F}~\u{8}", "the answer is compressed"),
            ("Content-Length: 99\r\n\r\n{", "the document broke off, or took too long"),
        ] {
            let peer = try ScriptedPeer(nil) { connection in
                // A byte that no text has.
                let bytes = "HTTP/1.1 200 OK\r\n\(answer)".utf8.map { $0 == UInt8(ascii: "~") ? 0x8B : $0 }
                if connection.request() != nil { connection.write(bytes) }
            }
            defer { peer.stop() }
            let fetcher = try DocumentFetcher(
                peer.url, caFile: nil, largest: 1 << 20, userAgent: "test", on: bench.loop,
                time: Sample.Time())
            guard case .failed(let failure) = await fetcher.fetch(etag: nil) else {
                Issue.record("\(answer) was taken")
                continue
            }
            #expect(failure.message.contains(words), "\(failure)")
        }
    }
}

@Suite("A handshake without a request")
struct HandshakeTests {
    private func options(_ bench: Bench, _ url: String) -> HTTPOptions {
        var options = HTTPOptions(url: url)
        options.settings.tls.caFile = bench.caFile
        options.heedsEnvironment = false
        options.settings.connectTimeout = .seconds(20)
        options.settings.token.inline = Secret("a secret")
        return options
    }

    @Test("--connect reaches a destination that listens, and sends it no request")
    func fault22_reached() throws {
        let bench = try Bench()
        let receiver = try bench.receiver()
        let url = "https://127.0.0.1:\(receiver.port)/path"
        #expect(try HTTPHandshake.attempt(options(bench, url)) == nil)
        #expect(receiver.stats.requests == 0)
    }

    @Test("mTLS: a server that refuses the agent's certificate after the handshake is not called connected")
    func refusedAfterTheHandshake() throws {
        let bench = try Bench()
        let now = SystemTime().wallTime
        let certificate = "\(bench.directory.path)/client.pem"
        let key = "\(bench.directory.path)/client.key"
        func use(_ identity: CertificateAuthority.Identity) throws {
            try PrivateFile.replace(certificate, with: identity.certificate)
            try PrivateFile.replace(key, with: identity.key)
        }
        let peer = try ScriptedPeer(bench.identity(), clientAuthority: bench.authority.certificate) {
            $0.hang()
        }
        defer { peer.stop() }
        var options = options(bench, peer.url)
        let none = try #require(try HTTPHandshake.attempt(options))
        // Where the server is gone already, the library keeps its complaint about that, and the reason is not known.
        let gone = "closed the connection right after the TLS handshake: it may require a client certificate"
        let refusals = ["requires a client certificate and got none", gone]
        #expect(none.kind == .tls && refusals.contains { none.message.contains($0) }, "\(none)")
        let stranger = try CertificateAuthority(now: now)
        try use(
            stranger.issue(
                .init(notBefore: now - .seconds(60), notAfter: now + .seconds(3600), isClient: true)))
        (options.settings.tls.certificateFile, options.settings.tls.keyFile) = (certificate, key)
        let foreign = try #require(try HTTPHandshake.attempt(options))
        #expect(
            foreign.kind == .tls && ["unknown ca", gone].contains { foreign.message.contains($0) },
            "\(foreign)")
        try use(bench.identity(names: [], isClient: true))
        #expect(try HTTPHandshake.attempt(options) == nil)
        let rude = try ScriptedPeer(bench.identity()) { _ in }
        defer { rude.stop() }
        let ended = try #require(try HTTPHandshake.attempt(self.options(bench, rude.url)))
        #expect(ended.message.contains("closed the connection right after the TLS handshake"), "\(ended)")
    }

    @Test("--connect says what prevents a connection: port, name, certificate, authority, pin")
    func fault22_notReached() throws {
        let bench = try Bench()
        let otherName = try bench.identity(names: ["DNS:elsewhere.test"])
        let past = try bench.identity(from: .seconds(-7200), until: .seconds(-3600))
        let stranger = try bench.receiver { $0.identity = otherName }
        let ended = try bench.receiver { $0.identity = past }
        let good = try bench.receiver()
        let plain = try bench.receiver { $0.identity = nil }
        for (url, kind, words) in [
            ("https://127.0.0.1:1/", .connect, "connection refused"),
            ("https://nowhere.invalid/", .resolve, "cannot resolve nowhere.invalid"),
            ("https://127.0.0.1:\(stranger.port)/", .tls, "for another name"),
            ("https://127.0.0.1:\(ended.port)/", .tls, "has expired"),
            ("https://127.0.0.1:\(plain.port)/", .tls, "this port may not speak TLS"),
        ] as [(String, Failure.Kind, String)] {
            let failure = try HTTPHandshake.attempt(options(bench, url))
            #expect(
                failure?.kind == kind && failure?.message.contains(words) == true, "\(url): \(failure as Any)"
            )
        }
        var unknown = options(bench, "https://127.0.0.1:\(good.port)/")
        unknown.settings.tls.caFile = nil
        #expect(try HTTPHandshake.attempt(unknown)?.message.contains("tls.ca_file") == true)
        var pinned = options(bench, "https://127.0.0.1:\(good.port)/")
        pinned.settings.tls.pinnedKeys = ["sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="]
        #expect(try HTTPHandshake.attempt(pinned)?.message.contains("pinned_keys") == true)
        #expect(throws: OutputError.self) { try HTTPHandshake.attempt(options(bench, "http://example.com/")) }
        #expect(good.stats.requests + stranger.stats.requests + ended.stats.requests == 0)
    }
}
