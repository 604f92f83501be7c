import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// The next attempt, from the parts of a destination alone: no queue, no destination, no clock.
@Suite("What is sent next")
struct ChooserTests {
    private let now = Moment(
        boot: BootInstant(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_795_168_800_000))

    /// The parts of a destination, to be changed before it is asked.
    private struct Parts {
        var options = DestinationOptions(name: "main")
        var views = PerPriority(both: LaneView())
        var attempts = Attempts()
        var kept = Kept()
        var standing = Standing()
        var blame = Blame(isWithSettings: true)
        var turns: Turns
        var pushing = Pushing()
        var gate = Gate()
        var suspectsFree = false
        private var ids = UUIDv7Generator()
        private var random = SplitMix64(seed: 1)

        init(at now: Moment) {
            turns = Turns(requestsPerSecond: nil, at: now.boot)
            gate.automatic = .init(waits: PerPriority(both: .seconds(6)), batchOnSize: true)
        }

        mutating func wait(_ priority: Priority, events: Int, free: Int = 0, at now: Moment) {
            var summary = LaneSummary()
            summary.revision = views[priority].summary.revision + 1
            summary.waitingEvents = events
            summary.waitingBytes = events * 100
            summary.oldestAcceptedAt = now.wall
            summary.freeBatches = free
            _ = views[priority].show(summary, at: now)
        }

        @discardableResult
        mutating func keep(
            _ priority: Priority = .normal, at now: Moment, _ change: (inout TrackedBatch) -> Void = { _ in }
        ) -> BatchID {
            let header = BatchHeader(
                id: ids.next(at: now.wall, using: &random), destination: "main", priority: priority,
                events: 1, bytes: 100, acceptedAt: now.wall, firstEventTime: now.wall)
            var batch = TrackedBatch(header: header, notBefore: now.boot)
            change(&batch)
            kept.keep(batch)
            return header.id
        }

        func chooser(at now: Moment) -> Chooser {
            let backlog = Backlog(
                options: options, views: views, attempts: attempts.counts, kept: kept.counts,
                mostEvents: options.mostEvents, maxBytes: options.batchBytes, suspectsFree: suspectsFree)
            return Chooser(
                backlog: backlog, attempts: attempts, kept: kept, standing: standing, blame: blame,
                turns: turns, pushing: pushing, gate: gate, now: now)
        }
    }

    @Test("critical events go before normal ones, and a full batch before its wait is over")
    func priorities() {
        var parts = Parts(at: now)
        #expect(parts.chooser(at: now).start() == nil)
        parts.wait(.normal, events: 49, at: now)
        #expect(parts.chooser(at: now).start() == nil, "the wait of six seconds is not over")
        parts.wait(.normal, events: 50, at: now)
        #expect(parts.chooser(at: now).start() == .next(.normal, takesFree: false, isProbe: false))
        parts.wait(.critical, events: 1, at: now)
        #expect(parts.chooser(at: now).start() == .next(.critical, takesFree: false, isProbe: false))
    }

    @Test("nothing starts while anything forbids it")
    func forbidden() {
        var parts = Parts(at: now)
        parts.wait(.normal, events: 50, at: now)
        var blocked = parts
        blocked.gate.block = .paused
        #expect(blocked.chooser(at: now).start() == nil)
        var off = parts
        off.gate.automatic = nil
        #expect(off.chooser(at: now).start() == nil)
        var offline = parts
        _ = offline.standing.setRoute(false)
        #expect(offline.chooser(at: now).start() == nil)
        var broken = parts
        broken.standing.openBreaker(nextProbe: now.boot + .seconds(1), at: now.wall)
        #expect(broken.chooser(at: now).start() == nil)
        broken.standing.setProbes(to: now.boot)
        #expect(broken.chooser(at: now).start() == .next(.normal, takesFree: false, isProbe: true))
        for _ in 0..<parts.options.parallelBatches {
            _ = parts.attempts.begin(Attempt(.next, priority: .normal, isProbe: false, isPushed: false))
        }
        parts.wait(.normal, events: 500, at: now)
        #expect(parts.chooser(at: now).start() == nil, "all places are taken")
    }

    @Test("pieces of rejected batches and new events alternate")
    func alternate() {
        let now = now
        var parts = Parts(at: now)
        parts.wait(.normal, events: 50, at: now)
        let piece = parts.keep(at: now) { $0.rejectedAt = now.boot }
        parts.turns.begun(isPiece: false)
        #expect(parts.chooser(at: now).start() == .again(piece, isProbe: false))
        parts.turns.begun(isPiece: true)
        #expect(parts.chooser(at: now).start() == .next(.normal, takesFree: false, isProbe: false))
    }

    @Test("a retry waits for its time; what is set aside comes when nothing else does")
    func retries() {
        let now = now
        var parts = Parts(at: now)
        let retry = parts.keep(at: now) { $0.notBefore = now.boot + .seconds(5) }
        #expect(parts.chooser(at: now).start() == nil)
        #expect(parts.chooser(at: now).planned() == now.boot + .seconds(5))
        let aside = parts.keep(at: now) { $0.aside = .fails }
        #expect(parts.chooser(at: now).start() == .again(aside, isProbe: false))
        let later = Moment(boot: now.boot + .seconds(5), wall: now.wall + .seconds(5))
        #expect(parts.chooser(at: later).start() == .again(retry, isProbe: false))
    }

    @Test("a probe takes one event in a long doubt, past a lane's first batch, and if it is the newest")
    func sizeOfProbe() {
        let now = now
        var parts = Parts(at: now)
        func events(_ probe: Doubt.NewProbe = Doubt.NewProbe(lane: .normal)) -> Int {
            parts.chooser(at: now).request(probe).maxEvents
        }
        let whole = parts.options.mostEvents
        #expect(events() == whole)
        var newest = Doubt.NewProbe(lane: .normal)
        newest.isNewest = true
        #expect(events(newest) == 1 && parts.chooser(at: now).request(newest).isNewest)
        parts.options.order = .kept
        #expect(events() == whole, "it passes nothing")
        parts.keep(at: now)
        #expect(events() == 1)
        parts.options.order = .free
        #expect(events() == whole)
        parts.standing.hold(for: .rejection, at: now)
        parts.standing.updateDoubt { $0.announce() }
        #expect(events() == 1)
        let other = Doubt.NewProbe(lane: .normal, notOf: ["bad"])
        #expect(events(other) == whole && parts.chooser(at: now).request(other).notOf == ["bad"])
    }

    @Test("in a doubt set-aside batches and others alternate, although the former are gone once tried")
    func turnsOfProbes() {
        let now = now
        var parts = Parts(at: now)
        parts.standing.hold(for: .rejection, at: now)
        parts.standing.updateDoubt { $0.announce() }
        // All are tried in this doubt already; those of one app were refused while others were accepted.
        for _ in 0..<20 {
            parts.keep(at: now) {
                ($0.app, $0.aside, $0.rejectedAt, $0.attemptedAt) = ("bad", .rejected, now.boot, now.boot)
            }
        }
        for app in ["one", "two", "three"] {
            for _ in 0..<5 {
                parts.keep(at: now) { ($0.app, $0.rejectedAt, $0.attemptedAt) = (app, now.boot, now.boot) }
            }
        }
        var apps: [String] = []
        for round in 1...8 {
            guard case .again(let id, isProbe: true)? = parts.chooser(at: now).start() else { break }
            guard var batch = parts.kept.take(id) else { break }
            apps.append(batch.app ?? "")
            parts.standing.updateDoubt { $0.noteAttempt(isRefused: batch.aside == .rejected) }
            // What was set aside becomes a dead letter; the others stay.
            batch.attemptedAt = now.boot + .seconds(10 * round)
            if !batch.isSetAside { parts.kept.keep(batch) }
        }
        #expect(apps.count == 8 && apps.count { $0 == "bad" } == 4)
        #expect(Set(apps.prefix(6)) == ["bad", "one", "two", "three"])
    }

    @Test("with a promised order only the first batch of a lane starts")
    func order() {
        let now = now
        var parts = Parts(at: now)
        parts.options.order = .promised
        parts.wait(.normal, events: 50, at: now)
        parts.keep(at: now) { $0.notBefore = now.boot + .seconds(5) }
        parts.keep(at: now)
        #expect(parts.chooser(at: now).start() == nil)
    }

    @Test("full batches are requested ahead only while all places are taken and nothing is wrong")
    func ahead() {
        let now = now
        var parts = Parts(at: now)
        parts.wait(.normal, events: 1_000, at: now)
        func lane(_ parts: Parts) -> Priority? { Ahead.lane(parts.chooser(at: now)) }
        for place in 1...parts.options.parallelBatches {
            #expect(lane(parts) == nil, "a place is free")
            let number = parts.attempts.begin(
                Attempt(.next, priority: .normal, isProbe: false, isPushed: false))
            parts.attempts.update(number) { $0.send(.made(events: 50, seed: UInt64(place))) }
        }
        #expect(lane(parts) == .normal)
        let backlog = parts.chooser(at: now).backlog
        #expect(Ahead.wantsMore(backlog, .normal, parts.gate, parts.pushing))
        #expect(!Ahead.wantsMore(backlog, .critical, parts.gate, parts.pushing))
        var waiting = parts
        waiting.keep(at: now)
        var held = parts
        held.standing.openBreaker(nextProbe: nil, at: now.wall)
        var off = parts
        off.gate.automatic = nil
        var ordered = parts
        ordered.options.order = .kept
        for other in [waiting, held, off, ordered] { #expect(lane(other) == nil) }
        for _ in 0..<5 {
            _ = parts.attempts.begin(Attempt(.nextAhead, priority: .normal, isProbe: false, isPushed: false))
        }
        #expect(lane(parts) == nil, "enough were requested")
    }
}
