import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

@Suite("Another app is asked while requests fail")
struct AskingTests {
    private let now = Moment(
        boot: BootInstant(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_795_168_800_000))

    /// A destination with an open breaker after an app's request has failed.
    private func failing(of apps: [String]) -> (Blame, Standing) {
        let failure = Failure(kind: .status, status: 500, message: "the receiver has a bug")
        var blame = Blame(isWithSettings: true)
        for app in apps {
            let evidence = Blame.Evidence(kind: .failed, batch: .made(), failure: failure, apps: [app])
            _ = blame.judge(evidence, of: Blame.Facts(), at: now.boot)
        }
        var standing = Standing()
        standing.openBreaker(nextProbe: now.boot + .seconds(600), at: now.wall)
        return (blame, standing)
    }

    private func plan(_ apps: [String], _ kept: Kept = Kept(), waiting: Int = 100) -> Asking.Plan? {
        let (blame, standing) = failing(of: apps)
        return Asking(.free, blame, standing).plan(
            blame, kept, isForProbesOnly: true, waitingEvents: waiting, at: now.boot)
    }

    @Test("apps matter only without an order and after an acknowledgement with these settings")
    func matters() {
        let (blame, standing) = failing(of: ["web"])
        #expect(Asking(.free, blame, standing).needsApps(blame))
        #expect(!Asking(.kept, blame, standing).needsApps(blame))
        let new = Blame(isWithSettings: false)
        #expect(!Asking(.free, new, standing).needsApps(new))
        let calm = Blame(isWithSettings: true)
        #expect(!Asking(.free, calm, Standing()).needsApps(calm), "nothing fails")
    }

    @Test("the queue is searched after 1, 2 and 4 s, and no more once five apps were asked")
    func waits() {
        let apps = ["a", "b", "c", "d", "e"]
        let seconds = (1...5).map { count -> Duration? in
            guard case .search(let then)? = plan(Array(apps.prefix(count))) else { return nil }
            return then - now.boot
        }
        #expect(seconds == [.seconds(2), .seconds(4), .seconds(4), .seconds(4), nil])
        #expect(plan(["a"], waiting: 0) == nil, "nothing waits that could be another app's")
        #expect(plan([]) == nil, "no app was asked yet")
    }

    @Test("a kept piece of an app that was not asked goes before a search")
    func piece() {
        var batch = TrackedBatch.made(notBefore: now.boot)
        batch.app = "other"
        var kept = Kept()
        kept.keep(batch)
        #expect(plan(["web"], kept) == .probe(now.boot + .seconds(2)))
        kept.update(batch.header.id) { $0.attemptedAt = now.boot }
        #expect(plan(["web"], kept) == .search(now.boot + .seconds(2)), "it was tried already")
    }
}
