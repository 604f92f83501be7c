import Glibc
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Which way requests go", .serialized)
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

    @Test("plain HTTP to this machine never goes to a proxy of the environment, nor does its token")
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

    @Test(
        "a server beside the destination, which is shown a secret, is reached over plain HTTP by no proxy of the environment"
    )
    func besides() {
        var options = HTTPOptions(url: "http://events.example.com/x")
        options.settings.allowPlainHTTP = true
        let plain = options.beside(EndpointURL("http://login.example.com/token"), caFile: nil)
        let safe = options.beside(EndpointURL("https://login.example.com/token"), caFile: nil)
        #expect(!plain.mayUseProxyOfEnvironment && safe.mayUseProxyOfEnvironment)
    }

    @Test("plain HTTP with a credential goes to no proxy of the environment; without one, and over TLS, it may")
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

    @Test("plain HTTP through a configured proxy is refused unless it is allowed by name")
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
}
