import Model
import TestKit
import Testing

@testable import Containers

@Suite("Rollouts")
struct RolloutTests {
    private func holds(_ percent: String, on host: String, id: String = "GTM-1") throws -> Bool {
        let trial = try Trial(
            "{\"id\":\"\(id)\",\"version\":1,\"rules\":{\"r\":{\"conditions\":[],\"rollout\":{\"percent\":\(percent),\"by\":\"host\"}}},\"tags\":[{\"name\":\"t\",\"type\":\"discard\",\"rules\":[\"r\"]}]}",
            facts: AgentFacts(hostName: host))
        return trial.apply(#"{"name":"n"}"#).fate != .kept
    }

    @Test(
        "tm15: a rollout reaches its share of the machines, and a smaller share is contained in a larger one"
    )
    func tm15_shares() throws {
        let hosts = (0..<1000).map { "web\($0).example.com" }
        let tenth = try hosts.filter { try holds("10", on: $0) }
        let fifth = try hosts.filter { try holds("20", on: $0) }
        #expect((70...130).contains(tenth.count))
        #expect((160...240).contains(fifth.count))
        #expect(Set(tenth).isSubset(of: fifth))
        #expect(try hosts.filter { try holds("10", on: $0) } == tenth)
        #expect(try hosts.allSatisfy { try holds("100", on: $0) && !(try holds("0", on: $0)) })
        // Another container begins with other machines.
        #expect(try hosts.filter { try holds("10", on: $0, id: "GTM-2") } != tenth)
    }

    @Test("tm08: a document for a share of the machines leaves the others with theirs, until it is for all")
    func tm08_wholeDocument() {
        func copy(_ version: Int, _ percent: Double?) -> ContainerCopy {
            ContainerCopy(
                version: version, expires: nil, rollout: percent,
                content: Array("\(version) \(percent ?? 100)".utf8))
        }
        var bench = MachineBench { $0.share = 15 }
        bench.handle(.start(standard: nil))
        bench.handle(bench.saved(5, age: .zero))
        bench.handle(.refresh)
        let held = bench.handle(.fetched(.copy(copy(6, 10), etag: "\"six\"")))
        #expect(held.notes == [.heldBack(version: 6), .succeeded(.network, version: 5, isNew: false)])
        #expect(held.contains(.confirm(bench.time.wallTime)))
        #expect(bench.version == 5 && bench.machine.heldBack == 6)
        // It is not fetched again as a whole, and said once.
        #expect(bench.handle(.refresh).contains(.fetch(etag: "\"six\"")))
        #expect(
            bench.handle(.fetched(.notModified)).notes == [.succeeded(.network, version: 5, isNew: false)])
        bench.handle(.refresh)
        #expect(bench.handle(.fetched(.copy(copy(7, 10), etag: "\"seven\""))).notes.count == 2)
        #expect(bench.version == 5)
        // The share grows: this machine is in the first fifth.
        bench.handle(.refresh)
        bench.handle(.fetched(.copy(copy(8, 20), etag: "\"eight\"")))
        #expect(bench.version == 8 && bench.machine.heldBack == nil)
        // A machine that has nothing takes what there is, and keeps it.
        var new = MachineBench { $0.share = 99 }
        new.handle(.start(standard: nil))
        new.handle(.saved(.missing))
        new.handle(.fetched(.copy(copy(7, 10), etag: "\"seven\"")))
        #expect(new.version == 7)
        new.handle(.refresh)
        new.handle(.fetched(.copy(copy(7, 10), etag: "\"seven\"")))
        #expect(new.version == 7 && new.machine.heldBack == nil)
        // An older one is refused, whomever it is for.
        new.handle(.refresh)
        new.handle(.fetched(.copy(copy(6, 1), etag: "\"six\"")))
        #expect(new.version == 7 && new.machine.heldBack == nil && new.effects.results.last?.1 == .version)
    }

    @Test("tm15: a rollout with an invalid share or key is refused")
    func tm15_mistakes() {
        for mistake in ["101", "-1", "\"10\""] {
            #expect(throws: ContainerError.self) { try holds(mistake, on: "a") }
        }
    }
}
