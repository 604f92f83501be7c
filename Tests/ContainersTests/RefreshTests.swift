import EventLoops
import TestKit
import Model
import Testing

@testable import Containers

@Suite("Refreshing a container")
struct RefreshTests {
    private func open(_ change: (inout ContainerMachine.Options) -> Void = { _ in }) -> MachineBench {
        var bench = MachineBench(change)
        bench.handle(.start(standard: MachineBench.copy(1)))
        bench.handle(bench.saved(5, age: .zero))
        return bench
    }

    @Test("tm06: a fresh document is fetched again before it is 12 h old, conditionally")
    func periodic() {
        var bench = open()
        #expect(bench.wait(.seconds(38_000)).fetches == 0)
        #expect(bench.wait(.seconds(5_200)).contains(.fetch(etag: "\"tag\"")))
    }

    @Test("tm06: the shorter of refresh_interval and fresh_for sets the timer")
    func interval() {
        for (fresh, interval) in [
            (Duration.seconds(43_200), Duration.seconds(600)), (.seconds(600), .seconds(43_200)),
        ] {
            var bench = open {
                $0.freshFor = fresh
                $0.refreshInterval = interval
            }
            #expect(bench.wait(.seconds(539)).fetches == 0)
            #expect(bench.wait(.seconds(61)).fetches == 1)
        }
    }

    @Test("with the shortest refresh_interval, agents that started together do not fetch in step")
    func spread() {
        var seconds: [Int64: Int] = [:]
        for host in 0..<200 {
            var bench = open { $0.refreshInterval = .seconds(60) }
            bench.random = SplitMix64(seed: UInt64(host))
            // The first one was planned when it was opened.
            bench.wait(.seconds(70))
            for round in 0..<10 where bench.machine.isFetching {
                let start = bench.time.bootTime
                bench.handle(.fetched(.notModified))
                while !bench.machine.isFetching, let wake = bench.machine.wake(at: bench.moment) {
                    bench.wait(max(.milliseconds(1), wake - bench.time.bootTime))
                }
                let wait = bench.time.bootTime - start
                #expect(wait >= .seconds(60) && wait <= .seconds(67), "\(host), round \(round): \(wait)")
                if round == 9 { seconds[bench.time.bootTime.nanoseconds / 1_000_000_000, default: 0] += 1 }
            }
        }
        #expect(seconds.values.reduce(0, +) == 200)
        #expect((seconds.values.max() ?? 0) < 50, "\(seconds)")
    }

    @Test("tm06: a 304 renews the age, which is stored")
    func notModified() {
        var bench = open()
        bench.wait(.seconds(43_200))
        let effects = bench.handle(.fetched(.notModified))
        #expect(effects.contains(.confirm(bench.time.wallTime)))
        #expect(effects.notes == [.succeeded(.network, version: 5, isNew: false)])
        #expect(bench.source == .saved && bench.version == 5)
        #expect(bench.machine.isFresh(at: bench.moment))
        #expect(bench.wait(.seconds(38_000)).fetches == 0)
    }

    @Test("tm08: a copy that could not be saved is saved later, and a 304 renews only the copy it is about")
    func unsaved() {
        var bench = open()
        bench.wait(.seconds(43_200))
        let copy = MachineBench.copy(6)
        let fetched = bench.handle(.fetched(.copy(copy, etag: "\"six\"")))
        #expect(fetched.contains(.keep(copy, etag: "\"six\"", confirmed: bench.time.wallTime)))
        let first = bench.time.wallTime
        bench.handle(.kept(false))
        // Again in 5 seconds, then in 10, at most in 300, until it is saved.
        #expect(bench.wait(.seconds(5)).contains(.keep(copy, etag: "\"six\"", confirmed: first)))
        bench.handle(.kept(false))
        #expect(!bench.wait(.seconds(9)).contains(.keep(copy, etag: "\"six\"", confirmed: first)))
        #expect(bench.wait(.seconds(1)).contains(.keep(copy, etag: "\"six\"", confirmed: first)))
        bench.handle(.kept(false))
        bench.handle(.refresh)
        let confirmed = bench.handle(.fetched(.notModified))
        #expect(!confirmed.contains(.confirm(bench.time.wallTime)))
        #expect(confirmed.contains(.keep(copy, etag: "\"six\"", confirmed: bench.time.wallTime)))
        bench.handle(.kept(true))
        bench.handle(.refresh)
        #expect(bench.handle(.fetched(.notModified)).contains(.confirm(bench.time.wallTime)))
    }

    @Test("tm06: a short refresh_interval does not shorten the pauses after failures")
    func backoffBeyondTheInterval() {
        var bench = open {
            $0.refreshInterval = .seconds(60)
            $0.freshFor = .seconds(60)
        }
        bench.wait(.seconds(60))
        for _ in 0..<8 {
            bench.handle(.fetched(.failed(.networkError, "gone")))
            bench.wait(.seconds(3600 * 5 / 4))
        }
        bench.handle(.fetched(.failed(.networkError, "gone")))
        #expect(bench.wait(.seconds(3599)).fetches == 0)
    }

    @Test("tm06: a 304 without a conditional request is an error")
    func strange304() {
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        let effects = bench.handle(.fetched(.notModified))
        #expect(effects.results.contains { $0 == (.network, .unknownError) })
        #expect(bench.source == .none)
    }

    @Test("tm06: an agent fetches at most twice a minute by itself; a refresh by command is immediate")
    func atMostOnceAMinute() {
        var random = SplitMix64(seed: Seeds.one(66))
        for run in 0..<300 {
            var bench = MachineBench {
                $0.refreshInterval = .seconds(60)
                $0.freshFor = .seconds(60)
            }
            var own: [BootInstant] = []
            bench.handle(.start(standard: nil))
            for _ in 0..<60 {
                let start = bench.effects.count
                bench.wait(.seconds(Int.random(in: 0...50, using: &random)))
                let input = bench.anything(using: &random)
                if case .refresh = input { continue }
                if case .fetched = input, !bench.machine.isFetching { continue }
                bench.handle(input)
                let fetches = bench.effects[start...].filter { if case .fetch = $0 { true } else { false } }
                    .count
                for _ in 0..<fetches { own.append(bench.time.bootTime) }
            }
            // Once by the clock and once because the network was back. Each was noted after its step, which took at most 50 s.
            for (earlier, later) in zip(own, own.dropFirst(4)) {
                #expect(later - earlier >= .seconds(60), "seed 66, run \(run)")
            }
        }
        var bench = open()
        #expect(bench.handle(.refresh).fetches == 1)
        #expect(bench.handle(.refresh).fetches == 0, "one at a time")
        bench.handle(.fetched(.notModified))
        #expect(bench.handle(.refresh).fetches == 1)
    }

    @Test("tm06: failures are retried after 1, 2, 4 … minutes, at most an hour, with jitter, until a success")
    func backoff() {
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        for minutes in [1, 2, 4, 8, 16, 32, 60, 60] {
            bench.handle(.fetched(.failed(.networkError, "refused")))
            #expect(bench.wait(.seconds(minutes * 60 - 1)).fetches == 0)
            #expect(bench.wait(.seconds(minutes * 15 + 1)).fetches == 1, "after \(minutes) min")
        }
        bench.handle(bench.fetched(2))
        #expect(bench.wait(.seconds(38_000)).fetches == 0)
    }

    @Test("tm06: a stale document is fetched as soon as the network is back, at most once a minute")
    func networkBack() {
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        bench.handle(.fetched(.failed(.noNetwork, "no route")))
        #expect(bench.handle(.networkChanged).fetches == 1)
        bench.handle(.fetched(.failed(.noNetwork, "no route")))
        #expect(bench.handle(.networkChanged).fetches == 0)
        bench.wait(.seconds(59))
        #expect(bench.effects.fetches == 2)
        #expect(bench.wait(.seconds(1)).fetches == 1)
        bench.handle(bench.fetched(6))
        #expect(bench.handle(.networkChanged).fetches == 0)
        var fresh = open()
        #expect(fresh.handle(.networkChanged).fetches == 0)
    }

    @Test("tm06: Retry-After delays the next fetch, except by command; a short one shortens no pause")
    func retryAfter() {
        for (wait, least) in [(Duration.seconds(7_200), 7_200), (.seconds(1), 60)] {
            var bench = MachineBench()
            bench.handle(.start(standard: nil))
            bench.handle(.saved(.missing))
            bench.handle(.fetched(.failed(.serverError, "503", retryAfter: wait)))
            #expect(bench.wait(.seconds(least - 1)).fetches == 0)
            #expect(bench.wait(.seconds(least / 4 + 1)).fetches == 1)
        }
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        bench.handle(.fetched(.failed(.serverError, "503", retryAfter: .seconds(7_200))))
        #expect(bench.handle(.networkChanged).fetches == 0)
        #expect(bench.wait(.seconds(7_199)).fetches == 0)
        #expect(bench.handle(.refresh).fetches == 1)
        // A success ends it.
        bench.handle(bench.fetched(2))
        bench.wait(.seconds(43_200))
        #expect(bench.machine.isFetching)
        bench.handle(.fetched(.failed(.networkError, "gone")))
        #expect(bench.wait(.seconds(76)).fetches == 1)
    }

    @Test("tm02: a default file that was read again takes over if the default is in force, else it waits")
    func rereadDefault() {
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        bench.handle(.fetched(.failed(.networkError, "gone")))
        #expect(bench.source == .none)
        bench.handle(.standard(MachineBench.copy(1)))
        #expect(bench.source == .standard && bench.version == 1)
        #expect(bench.handle(.standard(MachineBench.copy(1))).isEmpty)
        bench.handle(.standard(MachineBench.copy(2)))
        #expect(bench.source == .standard && bench.version == 2)
        bench.handle(.refresh)
        bench.handle(bench.fetched(5))
        bench.handle(.standard(MachineBench.copy(3)))
        #expect(bench.source == .network && bench.version == 5)
        // Not open yet: it opens with the newest.
        var early = MachineBench()
        early.handle(.start(standard: MachineBench.copy(1)))
        early.handle(.standard(MachineBench.copy(2)))
        early.handle(.saved(.missing))
        early.handle(.fetched(.failed(.networkError, "gone")))
        #expect(early.source == .standard && early.version == 2)
    }

    @Test("tm07: every refresh has a start and one result; so has a first start without network")
    func firstStartOffline() {
        var bench = MachineBench()
        bench.handle(.start(standard: nil))
        bench.handle(.saved(.missing))
        bench.handle(.fetched(.failed(.noNetwork, "no route")))
        #expect(bench.effects.results.map(\.1) == [.noSavedContainer, .noNetwork])
        #expect(bench.effects.notes.filter { if case .began = $0 { true } else { false } }.count == 2)
        #expect(bench.isOpen && bench.source == .none)
    }

    @Test(
        "tm07: each result has its type, and each refusal its own reason",
        arguments: RefreshResult.allCases)
    func results(_ result: RefreshResult) {
        var bench = open()
        bench.handle(.refresh)
        let input: ContainerMachine.Input =
            switch result {
            case .success: .fetched(.notModified)
            case .signature: .fetched(.refused(ContainerError(.signature, "unsigned")))
            case .version: bench.fetched(4)
            case .form: .fetched(.refused(ContainerError(.notJSON, "no JSON")))
            case .expired: .fetched(.copy(MachineBench.copy(6, expires: bench.time.wallTime), etag: nil))
            default: .fetched(.failed(result, "it failed"))
            }
        let effects = bench.handle(input)
        #expect(effects.results.map(\.0) == [.network] && effects.results.map(\.1) == [result])
        #expect(bench.version == 5)
        #expect((bench.machine.problem == nil) == (result == .success))
    }

    @Test("tm08: a version below the saved one is refused, even if the saved copy is damaged")
    func rollback() {
        var bench = open()
        bench.handle(.refresh)
        #expect(bench.handle(bench.fetched(4)).results.map(\.1) == [.version])
        #expect(bench.version == 5)

        var damaged = MachineBench()
        damaged.handle(.start(standard: MachineBench.copy(1)))
        damaged.handle(.saved(.refused(ContainerError(.signature, "damaged"), version: 5)))
        #expect(damaged.handle(damaged.fetched(4)).results.map(\.1) == [.version])
        #expect(damaged.source == .standard)
        damaged.handle(.refresh)
        damaged.handle(damaged.fetched(5))
        #expect(damaged.source == .network && damaged.version == 5)
    }

    @Test("tm08: a rollback is old content under a higher version; a version has one content")
    func goingBack() {
        var bench = open()
        bench.handle(.refresh)
        #expect(bench.handle(bench.fetched(5, "changed in place")).results.map(\.1) == [.version])
        bench.handle(.refresh)
        #expect(bench.handle(bench.fetched(5)).results.map(\.1) == [.success])
        bench.handle(.refresh)
        bench.handle(bench.fetched(6, "document 4"))
        #expect(bench.version == 6)
    }

    @Test("tm08: in random sequences the version in force never decreases")
    func neverBack() {
        var random = SplitMix64(seed: Seeds.one(88))
        for run in 0..<1000 {
            var bench = MachineBench { $0.opening = .immediate }
            bench.handle(.start(standard: nil))
            var highest = 0
            for _ in 0..<30 {
                bench.handle(bench.anything(using: &random))
                guard bench.source == .network || bench.source == .saved, let version = bench.version else {
                    continue
                }
                #expect(version >= highest || bench.source == .saved && highest == 0, "seed 88, run \(run)")
                if bench.source == .network { highest = max(highest, version) }
            }
        }
    }

    @Test(
        "tm08: an expired document is not accepted; if one expires, the default replaces it and a fetch begins"
    )
    func expiry() {
        var bench = MachineBench()
        bench.handle(.start(standard: MachineBench.copy(1)))
        let end = bench.time.wallTime + .seconds(7_200)
        bench.handle(
            .saved(.copy(MachineBench.copy(5, expires: end), etag: nil, confirmed: bench.time.wallTime)))
        bench.wait(.seconds(7_199))
        #expect(bench.version == 5)
        let effects = bench.wait(.seconds(1))
        #expect(effects.notes.contains(.expired(version: 5)))
        #expect(bench.source == .standard)
        #expect(effects.contains(.fetch(etag: nil)))
        #expect(bench.machine.problem != nil)

        var late = MachineBench()
        late.handle(.start(standard: MachineBench.copy(1)))
        let over = late.time.wallTime - .seconds(1)
        let result = late.handle(
            .saved(.copy(MachineBench.copy(5, expires: over), etag: nil, confirmed: over)))
        #expect(result.results.map(\.1) == [.expired])
        #expect(late.version == nil)
    }

    @Test(
        "tm08: nothing expires while the clock is not trusted; a clock that was set is noticed within an hour"
    )
    func clocks() {
        var bench = MachineBench()
        bench.handle(.start(standard: MachineBench.copy(1)))
        let end = bench.time.wallTime + .seconds(50_000)
        bench.handle(
            .saved(.copy(MachineBench.copy(5, expires: end), etag: nil, confirmed: bench.time.wallTime)))
        bench.isTrusted = false
        bench.time.step(to: end + .seconds(100))
        bench.handle(.timer)
        #expect(bench.version == 5)
        bench.isTrusted = true
        bench.wait(.seconds(3_600))
        #expect(bench.source == .standard)
    }

    @Test("tm06: a clock that was set back delays no fetch, neither after a reload nor at a start")
    func clockSetBack() {
        var bench = open()
        bench.time.step(to: bench.time.wallTime - .seconds(10 * 86_400))
        var options = bench.machine.options
        options.refreshInterval = .seconds(600)
        bench.machine.configure(options, at: bench.moment, using: &bench.random)
        #expect(bench.wait(.seconds(600)).fetches == 1)

        var started = MachineBench()
        started.handle(.start(standard: nil))
        #expect(started.handle(started.saved(5, age: .zero - .seconds(10 * 86_400))).fetches == 1)
    }

    @Test(
        "tm16: a draft of any version is in force for its time; a document that arrives meanwhile follows it")
    func preview() {
        var bench = open()
        let effects = bench.handle(.preview(MachineBench.copy(2, "draft"), .seconds(600)))
        #expect(effects.notes == [.previewBegan(version: 2)])
        #expect(bench.source == .preview && bench.version == 2)
        bench.handle(.refresh)
        let fetched = bench.handle(bench.fetched(6))
        #expect(!fetched.contains { if case .apply = $0 { true } else { false } })
        #expect(bench.version == 2)
        bench.wait(.seconds(599))
        #expect(bench.version == 2)
        let over = bench.wait(.seconds(1))
        #expect(over.notes == [.previewEnded(byTime: true)])
        #expect(bench.version == 6 && bench.source == .network)
    }

    @Test(
        "tm16: a draft is ended by command, which is harmless without one; a draft's version does not count")
    func endPreview() {
        var bench = open()
        #expect(bench.handle(.endPreview).isEmpty)
        bench.handle(.preview(MachineBench.copy(900), .seconds(600)))
        #expect(bench.handle(.endPreview).notes == [.previewEnded(byTime: false)])
        #expect(bench.version == 5)
        bench.handle(.refresh)
        bench.handle(bench.fetched(6))
        #expect(bench.version == 6)
    }
}
