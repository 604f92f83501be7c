@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Interval, size and critical delay")
struct IntervalTests {
    @Test("ac01: fifty waiting events are sent at once, fewer when the oldest has waited for the interval")
    func ac01_sizeAndInterval() {
        var world = World(options())
        let start = world.boot
        world.accept(50)
        world.run(.milliseconds(100))
        #expect(world.sizes == [50])
        world.accept(10)
        world.run(.milliseconds(5890))
        #expect(world.sizes == [50])
        world.run(.milliseconds(200))
        #expect(world.sizes == [50, 10])
        let second = world.sent[1].at - start
        #expect(second >= .milliseconds(6100) && second < .milliseconds(6110))
    }

    @Test("ac01: a steady drip does not postpone the sending")
    func ac01_dripDoesNotPostpone() {
        var world = World(options())
        let start = world.boot
        for second in 0..<60 { world.later(.seconds(second), .accept("main", .normal, 1)) }
        world.run(.seconds(70))
        #expect(world.sizes.reduce(0, +) == 60)
        #expect(world.sent[0].at - start < .milliseconds(6010))
        for (left, right) in zip(world.sent, world.sent.dropFirst()) {
            #expect(right.at - left.at <= .milliseconds(7010))
        }
    }

    @Test("ac01: without batch_on_size only the interval counts, and then all waiting events are sent")
    func ac01_intervalAlone() {
        var world = World(options(interval: .every(.seconds(600)), batchOnSize: false))
        world.accept(120)
        world.run(.seconds(300))
        world.accept(45)
        world.run(.seconds(299))
        #expect(world.sent.isEmpty)
        world.run(.seconds(2))
        #expect(world.sizes.reduce(0, +) == 165)
    }

    @Test("ac03: critical events are sent after the critical delay, or the interval if that is shorter")
    func ac03_criticalDelay() {
        var world = World(options())
        let start = world.boot
        world.accept(1, .critical)
        world.run(.seconds(10))
        #expect(world.sent[0].at - start >= .seconds(3) && world.sent[0].at - start < .milliseconds(3010))

        var quick = World(options(interval: .every(.seconds(1))))
        let begin = quick.boot
        quick.accept(1, .critical)
        quick.run(.seconds(10))
        #expect(quick.sent[0].at - begin < .milliseconds(1010))
    }

    @Test("ac04: three batches are in flight, and one critical batch besides; a failed one frees a slot")
    func ac04_placesAndTheCriticalOne() {
        var world = World(options())
        world.answer = { world, _ in
            (.seconds(20), world.sent.count == 1 ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(500)
        world.run(.seconds(5))
        #expect(world.sizes == [50, 50, 50])
        world.accept(60, .critical)
        world.run(.seconds(5))
        // 50 critical ones go as a full batch although all places are taken; the other ten have to wait.
        #expect(world.sent.count == 4)
        #expect(world.sent.last?.priority == .critical)
        world.run(.milliseconds(10_500))
        // Three ended, one of them badly: the ten critical ones first, then normal ones, up to three in all.
        #expect(world.sent[4].priority == .critical)
        #expect(world.inFlight.count == 3)
        world.runUntilQuiet()
        #expect(world.mostInFlight["main"] == 4)
        #expect(world.store.queued == 0 && world.faults.isEmpty && world.store.faults.isEmpty)
    }

    @Test("ac04: when twice the limit of a lane waits for retries, no new batch of it starts")
    func ac04_boundOfWaitingRetries() {
        var world = World(options { $0.whenExhausted = .suspend })
        world.answer = { _, sent in
            (.milliseconds(10), sent.priority == .normal ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(1000)
        world.run(.milliseconds(400))
        // After the three that were in flight one is tried at a time.
        #expect(world.shown.waitingForRetry == 3)
        world.run(.seconds(30))
        #expect((6...8).contains(Set(world.sent.map(\.batch)).count))
        world.accept(1, .critical)
        world.run(.seconds(8))
        #expect(world.sent.contains { $0.priority == .critical })
    }

    @Test("ac05: the wait survives a restart; one that is over sends at once; one from the future restarts")
    func ac05_waitsSurviveRestarts() {
        var world = World(options(interval: .every(.seconds(600))))
        world.accept(5)
        world.run(.seconds(200))
        world.restart(down: .seconds(100))
        let start = world.boot
        world.run(.seconds(299))
        #expect(world.sent.isEmpty)
        world.run(.seconds(2))
        #expect(world.sent.count == 1)
        #expect(world.sent[0].at - start >= .seconds(300))

        var over = World(options(interval: .every(.seconds(600))))
        over.accept(5)
        over.run(.seconds(200))
        over.restart(down: .seconds(1000))
        over.run(.seconds(1))
        #expect(over.sent.count == 1)

        var future = World(options(interval: .every(.seconds(600))))
        future.accept(5)
        future.run(.seconds(200))
        future.stepWall(by: .seconds(-86_400))
        future.restart()
        let restarted = future.boot
        future.run(.seconds(700))
        #expect(future.sent.count == 1)
        #expect(future.sent[0].at - restarted >= .seconds(600))
    }

    @Test("steps of the time of day neither delay nor shorten a wait")
    func fault21_clockSteps() {
        for step in [Duration.seconds(86_400 * 365), .seconds(-86_400 * 365)] {
            var world = World(options(interval: .every(.seconds(60))))
            let start = world.boot
            world.accept(5)
            world.run(.seconds(10))
            world.stepWall(by: step)
            world.input(.timer)
            world.run(.seconds(100))
            #expect(world.sent.count == 1)
            #expect(
                world.sent[0].at - start >= .seconds(60) && world.sent[0].at - start < .milliseconds(60_010))
        }
    }

    @Test("ac06: whatever causes a sending, waiting critical events are sent first")
    func ac06_criticalFirst() {
        var world = World(options())
        world.accept(1, .critical)
        world.accept(50)
        world.run(.milliseconds(100))
        #expect(world.sent.map(\.priority) == [.critical, .normal])
    }

    @Test("ga02: with the interval off nothing is sent by itself, critical or not, full or not")
    func ga02_offMeansManual() {
        var world = World(options(interval: .off))
        world.accept(1000)
        world.accept(1000, .critical)
        world.run(.seconds(86_400))
        #expect(world.sent.isEmpty)
        world.input(.dispatch(nil, nil))
        world.runUntilQuiet()
        #expect(world.store.queued == 0)
        #expect(world.sent.prefix(20).allSatisfy { $0.priority == .critical })
    }

    @Test("ga03: requests in flight at an exit are sent after the next start, under the same id")
    func ga03_survivesExit() {
        var world = World(options())
        world.answer = { _, _ in (.seconds(30), .acknowledged) }
        world.accept(50)
        world.run(.seconds(1))
        let id = world.sent[0].batch
        world.restart()
        world.run(.seconds(1))
        #expect(world.sent.map(\.batch) == [id, id])

        var manual = World(options(interval: .off))
        manual.accept(50)
        manual.input(.dispatch(nil, nil))
        manual.answer = { _, _ in (.seconds(30), .acknowledged) }
        manual.run(.seconds(1))
        manual.restart()
        manual.run(.seconds(100))
        #expect(manual.sent.count == 1)
        manual.input(.dispatch(nil, nil))
        manual.run(.seconds(1))
        #expect(manual.sent.map(\.batch) == [manual.sent[0].batch, manual.sent[0].batch])
    }

    @Test("ga10: the interval changes at run time, and beyond a restart if requested")
    func ga10_intervalChanges() {
        var world = World(options(interval: .every(.seconds(600))))
        let start = world.boot
        world.accept(5)
        world.input(.interval(.every(.seconds(30)), isDurable: false))
        world.run(.seconds(60))
        #expect(world.sent.count == 1 && world.sent[0].at - start < .seconds(31))
        world.restart()
        #expect(world.machine.snapshot(at: world.now).interval == .every(.seconds(600)))
        world.input(.interval(.off, isDurable: true))
        world.restart()
        #expect(world.machine.snapshot(at: world.now).interval == .off)
        // Without being asked to keep it, nothing that was kept is forgotten.
        world.input(.interval(nil, isDurable: false))
        #expect(world.machine.snapshot(at: world.now).interval == .every(.seconds(600)))
        world.restart()
        #expect(world.machine.snapshot(at: world.now).interval == .off)
        world.input(.interval(nil, isDurable: true))
        world.restart()
        #expect(world.machine.snapshot(at: world.now).interval == .every(.seconds(600)))
    }
}
