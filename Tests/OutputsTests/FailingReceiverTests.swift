import EventLoops
import Glibc
import Model
import Outputs
import Receiver
import TestKit
import Testing

@Suite("A receiver with injected faults")
struct FaultyReceiverTests {
    @Test("429 with Retry-After holds the destination for that long")
    func fault13_tooManyRequests() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver {
            $0.faults.fault = .status(429)
            $0.faults.retryAfter = 17
        }
        guard
            case .retryAfter(let wait, let failure) = try await bench.output(to: receiver.url).send(
                try Sample.batch(5))
        else {
            Issue.record("429 did not say when")
            return
        }
        #expect(wait == .seconds(17) && failure.status == 429 && failure.excerpt.contains("told to fail"))
    }

    @Test("503 for a while, then 200: the batch is stored once")
    func unavailableForAWhile() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver {
            $0.faults.fault = .status(503)
            $0.faults.first = 2
        }
        let output = try bench.output(to: receiver.url)
        for _ in 0..<2 { #expect(retried(await output.send(try Sample.batch(5)))?.status == 503) }
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        #expect(receiver.stats.events == 5 && receiver.stats.answers == [200: 1, 503: 2])
    }

    @Test("413 reports the size of the refused body")
    func fault12_tooLarge() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.faults.largestBody = 500 }
        let output = try bench.output(to: receiver.url) { $0.compression = .none }
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        let batch = Sample.batch([try Sample.part(0..<50, .none)], id: BatchID(high: 5, low: 5))
        guard case .tooLarge(let bytes, let failure) = await output.send(batch) else {
            Issue.record("413 was not too large")
            return
        }
        #expect(bytes == batch.header.bytes && failure.status == 413)
    }

    @Test("a receiver that answers 400 to batches with one marked event gets all others once")
    func fault11_markedEvent() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.faults.marker = #""n":7}"# }
        let output = try bench.output(to: receiver.url)
        #expect(await output.send(try Sample.batch(7, number: 1)) == .acknowledged)
        guard case .rejected(let failure) = await output.send(try Sample.batch(8, number: 2)) else {
            Issue.record("400 was not rejected")
            return
        }
        #expect(failure.status == 400 && receiver.stats.events == 7)
    }

    @Test("a connection cut after storing: the batch is retried, and stored once")
    func cutAfterStoring() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver {
            $0.faults.fault = .cutAfterStoring
            $0.faults.first = 1
        }
        let output = try bench.output(to: receiver.url)
        #expect(retried(await output.send(try Sample.batch(5)))?.kind == .connection)
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        #expect(receiver.stats.events == 5 && receiver.stats.repeats == 1 && receiver.stats.cuts == 1)
    }

    @Test(
        "a connection cut before storing or in the body: the batch is retried, and stored once",
        arguments: [true, false])
    func cutBeforeStoring(inBody: Bool) async throws {
        let bench = try Bench()
        let receiver = try bench.receiver {
            $0.faults.fault = inBody ? .cutInBody : .cutBeforeStoring
            $0.faults.first = 1
        }
        let output = try bench.output(to: receiver.url)
        #expect(retried(await output.send(try Sample.batch(5)))?.kind == .connection)
        #expect(await output.send(try Sample.batch(5)) == .acknowledged)
        #expect(receiver.stats.events == 5 && receiver.stats.repeats == 0 && receiver.stats.cuts == 1)
    }

    @Test("late answers are waited for, and a receiver can be stopped meanwhile")
    func lateAnswers() async throws {
        let bench = try Bench()
        let receiver = try bench.receiver { $0.faults.delay = .milliseconds(300) }
        let output = try bench.output(to: receiver.url)
        let (outcome, seconds) = try await timed { await output.send(try Sample.batch(5)) }
        #expect(outcome == .acknowledged && seconds >= 0.3)
        var plan = FaultPlan()
        plan.delay = .seconds(3600)
        receiver.misbehave(plan)
        let batch = try Sample.batch(5, number: 2)
        let task = Task(executorPreference: bench.loop) { await output.send(batch) }
        while receiver.stats.batches < 2 { await Task.yield() }
        receiver.stop()
        let (_, wait) = await timed { await task.value }
        #expect(wait < 45)
    }

    @Test("a receiver can be stopped exactly when an answer begins to wait")
    func stoppedBeforeTheWait() async throws {
        let bench = try Bench()
        for round in 0..<40 {
            let receiver = try bench.receiver { $0.faults.delay = .seconds(3600) }
            let output = try bench.output(to: receiver.url)
            let batch = try Sample.batch(5, number: UInt64(round))
            let task = Task(executorPreference: bench.loop) { await output.send(batch) }
            while receiver.stats.batches < 1 {}
            receiver.stop()
            let (_, wait) = await timed { await task.value }
            #expect(wait < 45)
        }
    }

    @Test("with a tenth of all requests failing in random ways, every event is stored once")
    func randomFaults() async throws {
        for fault in [FaultPlan.Fault.status(500), .cutInBody, .cutBeforeStoring, .cutAfterStoring] {
            let bench = try Bench()
            let receiver = try bench.receiver {
                $0.faults.fault = fault
                $0.faults.probability = 0.3
                $0.faults.seed = 11
            }
            let output = try bench.output(to: receiver.url)
            for number in 0..<40 {
                var attempts = 0
                while await output.send(try Sample.batch(3, number: UInt64(number))) != .acknowledged,
                    attempts < 50
                {
                    attempts += 1
                }
            }
            #expect(receiver.stats.events == 120 && receiver.stats.batches == 40)
        }
    }
}
