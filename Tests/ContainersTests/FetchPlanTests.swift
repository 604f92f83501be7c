import EventLoops
import Model
import Testing

@testable import Containers

/// When a container is fetched next, and what may follow what was published: without a machine.
@Suite struct FetchPlanTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000_000)

    /// Draws the least number of each range. Not 0: the library draws again after 0, so it would never return.
    private struct Least: RandomNumberGenerator {
        mutating func next() -> UInt64 { 1 }
    }

    @Test("One fetch at a time; without a person's request at most one in the least pause")
    func pause() {
        var plan = FetchPlan()
        let first = plan.begin(at: start, isOwn: true)
        #expect(first && plan.isFetching)
        let second = plan.begin(at: start, isOwn: false)
        #expect(!second)
        plan.end()
        let early = plan.begin(at: start + .seconds(1), isOwn: true)
        #expect(!early && plan.next == start + ContainerMachine.leastPause)
        let asked = plan.begin(at: start + .seconds(1), isOwn: false)
        #expect(asked && plan.next == nil)
    }

    @Test("The pause after failures doubles up to an hour, and a success ends it")
    func failures() {
        var (plan, random) = (FetchPlan(), Least())
        var pauses: [Duration] = []
        for _ in 0..<8 {
            plan.fail(at: start, &random)
            pauses.append((plan.next ?? start) - start)
        }
        #expect(pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600].map { .seconds($0) })
        #expect(plan.failures == 8)
        plan.succeed()
        plan.fail(at: start, &random)
        #expect(plan.failures == 1 && plan.next == start + .seconds(60))
    }

    @Test("The server's wish counts if it is longer than the own pause, until a success")
    func wish() {
        var (plan, random) = (FetchPlan(), Least())
        plan.delay(by: .seconds(1), at: start, &random)
        plan.fail(at: start, &random)
        #expect(plan.next == start + .seconds(60))
        plan.delay(by: .seconds(500), at: start, &random)
        plan.fail(at: start, &random)
        #expect(plan.next == start + .seconds(500))
        let unwanted = plan.beginAfterReturn(at: start)
        #expect(!unwanted && plan.next == start + .seconds(500))
        plan.succeed()
        let first = plan.beginAfterReturn(at: start)
        plan.end()
        let flapping = plan.beginAfterReturn(at: start + .seconds(59))
        let later = plan.beginAfterReturn(at: start + .seconds(60))
        #expect(first && !flapping && later)
    }

    @Test("A copy is fetched again when its interval is over, at once if it is older, and not in the past")
    func schedule() {
        var (plan, random) = (FetchPlan(), Least())
        for (age, wait) in [(0, 900), (300, 600), (5000, 0), (-1, 0)] {
            plan.schedule(each: .seconds(1000), after: .seconds(age), at: start, &random)
            #expect(plan.next == start + .seconds(wait), "age \(age)")
        }
        plan.schedule(each: .seconds(1), after: .zero, at: start, &random)
        #expect(plan.next == start + ContainerMachine.leastPause)
        plan.soon(at: start)
        #expect(plan.next == start)
    }
}

@Suite struct PublishedCopiesTests {
    private func copy(_ version: Int, _ text: String = "a", rollout: Double? = nil) -> ContainerCopy {
        ContainerCopy(version: version, expires: nil, rollout: rollout, content: Array(text.utf8))
    }

    private func held(_ copy: ContainerCopy) -> HeldContainer { HeldContainer(source: .network, copy: copy) }

    @Test("Nothing older follows, and nothing else under the same version")
    func order() {
        var copies = PublishedCopies()
        copies.raiseLeast(to: 3)
        #expect(copies.refusal(of: copy(2))?.code == .version && copies.refusal(of: copy(3)) == nil)
        copies.replace(by: held(copy(4)), etag: "four")
        copies.raiseLeast(to: 1)
        #expect(copies.refusal(of: copy(3))?.code == .version && copies.refusal(of: copy(4)) == nil)
        #expect(copies.refusal(of: copy(4, "b"))?.code == .version)
        copies.forget()
        #expect(copies.latest == nil && copies.wantedTag == nil && copies.refusal(of: copy(3)) != nil)
    }

    @Test("A version for other machines is held back until this machine's turn, and asked for once")
    func rollout() {
        var copies = PublishedCopies()
        let next = copy(5, rollout: 10)
        #expect(!copies.isForOthers(next, share: 50), "any document is better than none")
        copies.restore(held(copy(4)), etag: "four")
        #expect(copies.isForOthers(next, share: 10) && !copies.isForOthers(next, share: 9.9))
        let isNew = copies.noteWaiting(5, etag: "five")
        let isNewAgain = copies.noteWaiting(5, etag: nil)
        #expect(isNew && !isNewAgain && copies.wantedTag == "four")
        copies.replace(by: held(next), etag: "five")
        #expect(copies.waiting == nil && copies.wantedTag == "five")
    }
}
