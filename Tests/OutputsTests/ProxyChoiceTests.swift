import Glibc
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("The choice of a proxy", .serialized)
struct ProxyChoiceTests {
    /// A server for plain HTTP that keeps the heads of what it was asked.
    private func peer(_ seen: Seen) throws -> ScriptedPeer {
        try ScriptedPeer(nil) { connection in
            while let (head, _) = connection.request() {
                seen.note(head)
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            }
        }
    }

    @Test("plain HTTP to this machine, with its token, never uses a proxy of the environment")
    func loopback() async throws {
        let bench = try Bench()
        let (server, proxy) = (Seen(), Seen())
        let destination = try peer(server)
        let stranger = try peer(proxy)
        defer {
            destination.stop()
            stranger.stop()
        }
        let names = ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"]
        for name in names { setenv(name, stranger.url, 1) }
        defer { for name in names { unsetenv(name) } }
        let output = try bench.output(to: destination.url, heedsEnvironment: true) {
            $0.token.inline = Secret("token-of-main")
        }
        #expect(await output.send(try Sample.batch(3)) == .acknowledged)
        #expect(server.all.count == 1 && proxy.all.isEmpty, "\(proxy.all)")
        #expect(server.last.contains("Authorization: Bearer token-of-main"))
    }

    @Test("plain HTTP with a secret to a server beside the destination uses no proxy of the environment")
    func besides() {
        var options = HTTPOptions(url: "http://events.example.com/x")
        options.settings.allowPlainHTTP = true
        let plain = options.beside(EndpointURL("http://login.example.com/token"), caFile: nil)
        let safe = options.beside(EndpointURL("https://login.example.com/token"), caFile: nil)
        #expect(!plain.mayUseProxyOfEnvironment && safe.mayUseProxyOfEnvironment)
        options.settings.requestTimeout = .seconds(3)
        #expect(options.beside(EndpointURL("https://a"), caFile: nil).settings.requestTimeout == .seconds(3))
    }

    @Test("plain HTTP with a credential uses no proxy of the environment; without one, or over TLS, it may")
    func credentials() {
        var options = HTTPOptions(url: "http://events.example.com/x")
        options.settings.allowPlainHTTP = true
        #expect(options.mayUseProxyOfEnvironment)
        options.settings.headers = ["X-Key": Secret("secret")]
        #expect(!options.mayUseProxyOfEnvironment)
        options.settings.headers = [:]
        options.settings.token.inline = Secret("secret")
        #expect(!options.mayUseProxyOfEnvironment)
        options.settings.url = EndpointURL("https://events.example.com/x")
        #expect(options.mayUseProxyOfEnvironment)
        options.settings.url = EndpointURL("https://localhost/x")
        #expect(!options.mayUseProxyOfEnvironment)
    }

    @Test("plain HTTP through a configured proxy is refused unless it is allowed explicitly")
    func configuredProxy() throws {
        var options = HTTPOptions(url: "http://localhost:8080/x")
        options.settings.proxy = EndpointURL("http://proxy.example.com:3128")
        #expect(throws: OutputError.self) { try options.check() }
        options.settings.allowPlainHTTP = true
        try options.check()
        options.settings.allowPlainHTTP = false
        options.settings.proxy = EndpointURL("http://127.0.0.1:3128")
        try options.check()
        options.settings.url = EndpointURL("https://events.example.com/x")
        options.settings.proxy = EndpointURL("http://proxy.example.com:3128")
        try options.check()
    }

    @Test("failures at a proxy name the proxy and its origin; failures in its tunnel name both ends")
    func failuresOfProxies() async throws {
        let bench = try Bench()
        let answers = [
            (nil, "no connection to the proxy PROXY for collector.test: connection refused"),
            ("", "the connection to the proxy PROXY for collector.test broke before an answer arrived"),
            (
                "nonsense\r\n\r\n",
                "the connection to the proxy PROXY for collector.test broke before an answer arrived"
            ),
            ("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", "answered 403: see its rules"),
            (
                "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n",
                "the proxy PROXY for collector.test answered 503: it could not"
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<html>login</html>  ",
                "no TLS with collector.test through the proxy PROXY:"
            ),
        ]
        for (answer, words) in answers {
            let peer = try ScriptedPeer(nil) { connection in
                guard let answer, connection.request() != nil else { return }
                connection.write(answer)
            }
            if answer == nil { peer.stop() }
            defer { peer.stop() }
            let address = "http://127.0.0.1:\(peer.port)"
            let configured = try bench.output(to: "https://collector.test/in") {
                $0.proxy = EndpointURL(address.replacing("//", with: "//agent:proxypass@"))
            }
            let said = try #require(retried(await configured.send(try Sample.batch(5)))?.message)
            #expect(said.contains(words.replacing("PROXY", with: address)), "\(said)")
            #expect(!said.contains("proxypass"), "\(said)")
            setenv("https_proxy", "127.0.0.1:\(peer.port)", 1)
            defer { unsetenv("https_proxy") }
            let found = try bench.output(to: "https://collector.test/in", heedsEnvironment: true)
            let named = try #require(retried(await found.send(try Sample.batch(5)))?.message)
            #expect(
                named.contains(words.replacing("PROXY", with: "\(address) (https_proxy of the environment)")),
                "\(named)")
        }
    }

    @Test("a silent proxy and a proxy with an unknown name are reported")
    func silentProxy() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { $0.hang() }
        defer { peer.stop() }
        for (address, words) in [
            (
                "http://127.0.0.1:\(peer.port)",
                "no connection to the proxy http://127.0.0.1:\(peer.port) for collector.test in time:"
                    + " the proxy accepted the connection and did not answer CONNECT"
            ),
            (
                "http://proxy.invalid:3128",
                "cannot resolve the proxy http://proxy.invalid:3128 for collector.test"
            ),
        ] {
            let output = try bench.output(to: "https://collector.test/in") {
                $0.proxy = EndpointURL(address)
                $0.connectTimeout = .milliseconds(200)
            }
            let said = try #require(retried(await output.send(try Sample.batch(5)))?.message)
            #expect(said.contains(words), "\(said)")
        }
    }

    @Test("for a server in no_proxy, failures name the server itself")
    func exempt() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { _ in }
        peer.stop()
        setenv("https_proxy", "http://127.0.0.1:\(peer.port)", 1)
        defer { for name in ["https_proxy", "no_proxy"] { unsetenv(name) } }
        for list in ["192.0.2.0/24, .invalid", "other.example nowhere.invalid", "*"] {
            setenv("no_proxy", list, 1)
            let output = try bench.output(to: "https://nowhere.invalid/in", heedsEnvironment: true)
            let said = try #require(retried(await output.send(try Sample.batch(5)))?.message)
            #expect(
                said == "cannot resolve nowhere.invalid: check the url and the name servers",
                "\(list): \(said)")
        }
    }
}
