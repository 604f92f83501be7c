import EventLoops
import Model
import TestKit
import Testing

@testable import Containers

@Suite("Opening a container")
struct OpeningTests {
    private let standard = MachineBench.copy(1)

    @Test("tm01: the default is in force until the first fetch, then the fetched document, which is saved")
    func defaultUntilFetched() {
        var bench = MachineBench { $0.opening = .immediate }
        let first = bench.handle(.start(standard: standard))
        #expect(first.contains(.open))
        #expect(bench.source == .standard)
        let second = bench.handle(.saved(.missing))
        #expect(second.contains(.fetch(etag: nil)))
        let third = bench.handle(bench.fetched(2))
        #expect(bench.source == .network && bench.version == 2)
        #expect(
            third.contains(.keep(MachineBench.copy(2), etag: "\"tag 2\"", confirmed: bench.time.wallTime)))
    }

    @Test("tm01: without an address the default stays in force, and nothing is read or fetched")
    func withoutAddress() {
        var bench = MachineBench { $0.hasAddress = false }
        #expect(bench.handle(.start(standard: standard)).contains(.open))
        #expect(bench.wait(.seconds(30 * 86_400)).isEmpty)
        #expect(bench.handle(.refresh).isEmpty)
        #expect(bench.source == .standard)
        #expect(bench.machine.isFresh(at: bench.moment))
    }

    @Test(
        "tm03: prefer_non_default opens with the saved document of any age; a stale one also starts a fetch")
    func savedWins() {
        for (age, fetches) in [
            (Duration.seconds(60), 0), (.seconds(43_200), 0), (.seconds(43_201), 1), (.seconds(9e6), 1),
        ] {
            var bench = MachineBench()
            bench.handle(.start(standard: standard))
            #expect(!bench.isOpen)
            let effects = bench.handle(bench.saved(5, age: age))
            #expect(bench.isOpen && bench.source == .saved && bench.version == 5)
            #expect(effects.fetches == fetches, "age \(age)")
        }
    }

    @Test(
        "tm03: without a saved document the network opens it; after a failure or the timeout the default does"
    )
    func withoutSaved() {
        var network = MachineBench()
        network.handle(.start(standard: standard))
        network.handle(.saved(.missing))
        #expect(!network.isOpen)
        network.handle(network.fetched(3))
        #expect(network.isOpen && network.source == .network)

        var failing = MachineBench()
        failing.handle(.start(standard: standard))
        failing.handle(.saved(.missing))
        failing.handle(.fetched(.failed(.networkError, "refused")))
        #expect(failing.isOpen && failing.source == .standard)

        var slow = MachineBench()
        slow.handle(.start(standard: standard))
        slow.handle(.saved(.missing))
        slow.wait(.milliseconds(1999))
        #expect(!slow.isOpen)
        slow.wait(.milliseconds(1))
        #expect(slow.isOpen && slow.source == .standard)
    }

    @Test("tm03: a document that arrives after the timeout takes over, and is reported once")
    func lateArrivals() {
        var bench = MachineBench()
        bench.handle(.start(standard: standard))
        bench.wait(.seconds(3))
        #expect(bench.source == .standard)
        let saved = bench.handle(bench.saved(4, age: .seconds(90_000)))
        #expect(saved.notes.contains(.tookOver(.saved, version: 4)))
        let fresh = bench.handle(bench.fetched(5))
        #expect(fresh.notes.contains(.tookOver(.network, version: 5)))
        #expect(bench.effects.opens == 1)
    }

    @Test("tm04: prefer_fresh opens with a fresh saved document at once")
    func freshSaved() {
        var bench = MachineBench { $0.opening = .preferFresh }
        bench.handle(.start(standard: standard))
        let effects = bench.handle(bench.saved(5, age: .seconds(43_200)))
        #expect(bench.isOpen && bench.source == .saved)
        #expect(effects.fetches == 0)
    }

    @Test(
        "tm04: prefer_fresh waits for the network if the saved document is stale, then uses that or the default"
    )
    func staleSaved() {
        for end in 0..<4 {
            var bench = MachineBench { $0.opening = .preferFresh }
            bench.handle(.start(standard: standard))
            bench.handle(bench.saved(5, age: .seconds(43_201)))
            #expect(!bench.isOpen)
            switch end {
            case 0:
                bench.handle(bench.fetched(6))
                #expect(bench.source == .network && bench.version == 6)
            case 1:
                bench.handle(.fetched(.notModified))
                #expect(bench.source == .saved && bench.version == 5)
                #expect(bench.machine.isFresh(at: bench.moment))
            case 2:
                bench.handle(.fetched(.failed(.noNetwork, "offline")))
                #expect(bench.source == .saved)
            default:
                bench.wait(.seconds(2))
                #expect(bench.source == .saved)
            }
            #expect(bench.isOpen)
        }
        var nothing = MachineBench { $0.opening = .preferFresh }
        nothing.handle(.start(standard: standard))
        nothing.handle(.saved(.missing))
        nothing.wait(.seconds(2))
        #expect(nothing.isOpen && nothing.source == .standard)
    }

    @Test("tm04: immediate opens with the default at once, which the saved and the fetched document replace")
    func immediate() {
        var bench = MachineBench { $0.opening = .immediate }
        #expect(bench.handle(.start(standard: nil)).contains(.open))
        #expect(bench.source == .none)
        bench.handle(bench.saved(5, age: .seconds(50_000)))
        #expect(bench.source == .saved)
        bench.handle(bench.fetched(6))
        #expect(bench.source == .network)
        #expect(bench.effects.opens == 1)
    }

    @Test("tm05: in any order of answers, it is open after the timeout, and reports that once")
    func alwaysOpens() {
        var random = SplitMix64(seed: Seeds.one(55))
        for seed in 0..<2000 {
            var bench = MachineBench {
                $0.opening =
                    [.preferNonDefault, .preferFresh, .immediate].randomElement(using: &random) ?? .immediate
                $0.hasAddress = Bool.random(using: &random)
            }
            bench.handle(.start(standard: Bool.random(using: &random) ? standard : nil))
            for _ in 0..<Int.random(in: 0...6, using: &random) {
                bench.wait(.milliseconds(Int.random(in: 0...900, using: &random)))
                bench.handle(bench.anything(using: &random))
            }
            bench.wait(.seconds(2))
            #expect(bench.isOpen, "seed 55, run \(seed)")
            #expect(bench.effects.opens == 1, "seed 55, run \(seed)")
        }
    }

    @Test("a stop ends the opening with the document at hand")
    func stopOpening() {
        var bench = MachineBench { $0.opening = .preferFresh }
        bench.handle(.start(standard: standard))
        bench.handle(.stopOpening)
        #expect(bench.isOpen && bench.source == .standard)
        #expect(bench.handle(.stopOpening).isEmpty)
    }
}

extension MachineBench {
    /// Something that may happen to a container.
    func anything(using random: inout SplitMix64) -> ContainerMachine.Input {
        let version = Int.random(in: 1...9, using: &random)
        switch Int.random(in: 0..<14, using: &random) {
        case 0: return saved(version, age: .seconds(Int.random(in: -100...90_000, using: &random)))
        case 1: return .saved(.missing)
        case 2: return .saved(.failed("disk"))
        case 3: return .saved(.refused(ContainerError(.signature, "bad"), version: version))
        case 4, 5: return fetched(version)
        case 6: return fetched(version, "another \(Int.random(in: 0...1, using: &random))")
        case 7: return .fetched(.notModified)
        case 8: return .fetched(.refused(ContainerError(.form, "bad")))
        case 9: return .fetched(.failed(.serverError, "500"))
        case 10: return .refresh
        case 11: return .networkChanged
        case 12: return .preview(MachineBench.copy(100 + version), .seconds(30))
        default: return .endPreview
        }
    }
}
