@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Network state")
struct NetworkStateTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    private func findings(gateway: UInt8?, interface: UInt32 = 2, hasAddress: Bool = true) -> NetworkFindings
    {
        var findings = NetworkFindings()
        findings.defaultRoutes = [gateway.map { .init(interface: interface, gateway: [10, 0, 0, $0]) }, nil]
        findings.hasAddress = hasAddress
        return findings
    }

    @Test(
        "ac15: a default route that appears or changes gateway or interface is news, one that vanishes is not"
    )
    func ac15_whatIsNews() {
        var state = NetworkState(targets: ["main": [.name]])
        #expect(
            state.update(findings(gateway: 1), at: start).news
                == NetworkNews(hasChanged: false, routes: ["main": true])
        )
        #expect(state.update(findings(gateway: 1), at: start).news == nil)
        #expect(state.update(findings(gateway: 2), at: start + .seconds(1)).news?.hasChanged == true)
        #expect(
            state.update(findings(gateway: 2, interface: 3), at: start + .seconds(100)).news?.hasChanged
                == true)
        #expect(state.update(findings(gateway: nil), at: start + .seconds(200)).news == nil)
        #expect(
            state.update(findings(gateway: 2, interface: 3), at: start + .seconds(300)).news?.hasChanged
                == true)
    }

    @Test("ac15: at most one change in 30 s is reported; a delayed one is reported later, if it still holds")
    func ac15_atMostOneIn30Seconds() {
        var state = NetworkState(targets: ["main": [.name]])
        _ = state.update(findings(gateway: 1), at: start)
        #expect(state.update(findings(gateway: 2), at: start).news?.hasChanged == true)
        for second in 1..<30 {
            let result = state.update(findings(gateway: UInt8(2 + second)), at: start + .seconds(second))
            #expect(result.news == nil && result.again == start + .seconds(30))
        }
        #expect(state.update(findings(gateway: 77), at: start + .seconds(30)).news?.hasChanged == true)
        let back = state.update(findings(gateway: 77), at: start + .seconds(31))
        #expect(back.news == nil && back.again == nil)
    }

    @Test("ac15: a missing route to a destination is reported at once; loopback is always reachable")
    func ac15_reached() {
        var state = NetworkState(targets: [
            "lan": [NetworkTarget(host: "10.0.0.7")], "wan": [NetworkTarget(host: "collector.example.com")],
            "here": [NetworkTarget(host: "[::1]")], "there": [NetworkTarget(host: "2001:db8::7")],
        ])
        var seen = findings(gateway: nil, hasAddress: true)
        seen.reached[[10, 0, 0, 7]] = true
        seen.reached[[0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7]] = false
        #expect(
            state.update(seen, at: start).news?.routes == [
                "lan": true, "wan": true, "here": true, "there": false,
            ])
        let cut = findings(gateway: nil, hasAddress: false)
        #expect(state.update(cut, at: start).news?.routes["wan"] == false)
        #expect(state.update(findings(gateway: 1), at: start).news?.routes["wan"] == true)
    }

    @Test("ac15: a destination with several servers is offline only without a route to any of them")
    func ac15_anyServer() {
        var state = NetworkState(targets: ["bus": ["10.0.0.7", "10.0.0.8"].map { NetworkTarget(host: $0) }])
        var seen = findings(gateway: nil)
        for (first, second, isReached) in [
            (true, true, true), (false, true, true), (false, false, false), (true, false, true),
        ] {
            seen.reached = [[10, 0, 0, 7]: first, [10, 0, 0, 8]: second]
            _ = state.update(seen, at: start)
            #expect(state.routes["bus"] == isReached, "\(first), \(second)")
        }
    }

    @Test(
        "a URL's host is an address, a name or this machine",
        arguments: [
            ("127.0.0.1", .local), ("127.9.9.9", .local), ("::1", .local), ("[::1]", .local),
            ("localhost", .local),
            ("a.LOCALHOST", .local), ("", .local), ("10.1.2.3", .address([10, 1, 2, 3])),
            ("example.com", .name),
            ("1.2.3", .name),
        ] as [(String, NetworkTarget)])
    func hosts(host: String, target: NetworkTarget) {
        #expect(NetworkTarget(host: host) == target)
    }
}
