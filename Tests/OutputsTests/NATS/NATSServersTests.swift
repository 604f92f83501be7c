import Testing

@testable import Outputs

/// The order of a cluster's servers, without a server.
@Suite struct NATSServersTests {
    private let names = ["a:1", "b:2", "c:3"]

    /// Three configured servers; `draw` chooses the first.
    private func cluster(draw: UInt64 = 0) throws -> NATSServers {
        NATSServers(try names.map { try #require(NATSAddress(authority: $0)) }, draw: draw)
    }

    private func order(_ servers: NATSServers) -> [String] { servers.candidates.map(\.authority) }

    @Test("A drawn number chooses the server to begin with")
    func draw() throws {
        #expect(order(try cluster(draw: 4)) == ["b:2", "c:3", "a:1"])
        #expect(order(try cluster(draw: .max)) == ["a:1", "b:2", "c:3"])
    }

    @Test("A server that refuses, fails or leaves is tried last")
    func pass() throws {
        var servers = try cluster()
        servers.passFirst()
        #expect(order(servers) == ["b:2", "c:3", "a:1"])
        servers.pass(try #require(NATSAddress(authority: "c:3")))
        #expect(order(servers) == ["a:1", "b:2", "c:3"])
        servers.pass(try #require(NATSAddress(authority: "other:9")))
        #expect(order(servers) == ["a:1", "b:2", "c:3"])
    }

    @Test("The server that accepted the agent is tried first next time")
    func prefer() throws {
        var servers = try cluster()
        servers.prefer(try #require(NATSAddress(authority: "c:3")))
        #expect(order(servers) == ["c:3", "a:1", "b:2"])
    }

    @Test("Announced servers follow the configured ones, each once")
    func learn() throws {
        var servers = try cluster()
        let teacher = servers.candidates[0]
        servers.learn(["b:2", "d:4", "not an address"], from: teacher, isEncrypted: false)
        #expect(order(servers) == ["a:1", "b:2", "c:3", "d:4"])
        // Learned without TLS: its certificate must be that of the server that announced it.
        #expect(servers.candidates[3].verifiedName == "a" && !servers.candidates[3].isTLS)
        servers.learn([], from: teacher, isEncrypted: true)
        #expect(order(servers).last == "d:4")
        servers.learn(["e:5"], from: teacher, isEncrypted: true)
        #expect(order(servers) == ["a:1", "b:2", "c:3", "e:5"])
        #expect(servers.candidates[3].verifiedName == "e" && servers.candidates[3].isTLS)
    }
}
