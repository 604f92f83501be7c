import EventLoops
import Glibc
import Synchronization
import Testing

/// An actor that lives on a loop, as the agent's do.
private actor Resident {
    let loop: EventLoop
    var seen: [String] = []

    init(on loop: EventLoop) { self.loop = loop }
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    func note(_ word: String) -> Bool {
        seen.append(word)
        return loop.isCurrent
    }

    func gather() { loop.gatherWakeUps() }

    /// Asks another actor for many things at once; whether all were done on its loop.
    func ask(_ other: Resident, times: Int) async -> Bool {
        await withTaskGroup(of: Bool.self) { group in
            for number in 0..<times { group.addTask { await other.note("\(number)") } }
            return await group.allSatisfy { $0 }
        }
    }

    func fireInOrder() async -> [String] {
        await withCheckedContinuation { continuation in
            loop.after(.milliseconds(20)) { self.assumeIsolated { $0.seen.append("second") } }
            loop.after(.milliseconds(1)) { self.assumeIsolated { $0.seen.append("first") } }
            let cancelled = loop.after(.milliseconds(5)) {
                self.assumeIsolated { $0.seen.append("cancelled") }
            }
            loop.cancel(cancelled)
            loop.after(.milliseconds(30)) { continuation.resume(returning: self.assumeIsolated { $0.seen }) }
        }
    }

    /// Makes timers that wait so many milliseconds; some of them, and some timers as they fire, cancel others or make new ones.
    ///
    /// - Returns: the numbers of those that were not cancelled, and of those that fired; -1 for one that fired too early.
    func fireInAnyOrder(_ waits: [UInt64]) async -> (left: [Int], fired: [Int]) {
        var timers: [Int: EventLoop.TimerID] = [:]
        var left: Set<Int> = []
        var fired: [Int] = []
        func make(_ number: Int, _ milliseconds: UInt64) {
            let wait = Duration.milliseconds(Int64(milliseconds))
            let deadline = SystemTime().bootTime + wait
            left.insert(number)
            timers[number] = loop.after(wait) {
                fired.append(SystemTime().bootTime >= deadline ? number : -1)
                timers[number] = nil
                if number % 5 == 0 { make(number + 1001, milliseconds / 2) }
                if number % 7 == 0 { cancel(number + 1) }
            }
        }
        func cancel(_ number: Int) {
            guard let timer = timers.removeValue(forKey: number) else { return }
            loop.cancel(timer)
            left.remove(number)
        }
        for (number, wait) in waits.enumerated() {
            make(number, wait)
            if number % 3 == 2 { cancel(number - 1) }
        }
        await withCheckedContinuation { continuation in
            // After all others: it is due later than any of them.
            loop.after(.milliseconds(200)) { continuation.resume() }
        }
        return (Array(left), fired)
    }

    /// Sets a timer, for a loop that sleeps until then.
    func set(_ wait: Duration) { loop.after(wait) {} }

    func wait(_ time: Duration) async {
        await withCheckedContinuation { continuation in loop.after(time) { continuation.resume() } }
    }

    func readOnce(from descriptor: Int32) async throws -> UInt8 {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try loop.watch(descriptor, for: .readable) { _ in
                    var byte: UInt8 = 0
                    _ = read(descriptor, &byte, 1)
                    self.loop.forget(descriptor)
                    continuation.resume(returning: byte)
                }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}

@Suite("Event loop")
struct EventLoopTests {
    private func withLoop(_ body: (EventLoop) async throws -> Void) async throws {
        let loop = try EventLoop(name: "test")
        try loop.start()
        defer { loop.stop() }
        try await body(loop)
    }

    @Test("a thread that waits for a loop gets its answer, after what the loop had to do before")
    func waitingForALoop() throws {
        let loop = try EventLoop(name: "answers")
        try loop.start()
        defer { loop.stop() }
        let bound = LoopBound(loop, to: loop)
        let order = Mutex<[Int]>([])
        for number in 0..<100 {
            loop.post { order.withLock { $0.append(2 * number) } }
            let isOnLoop = bound.wait { loop in
                order.withLock { $0.append(2 * number + 1) }
                return loop.isCurrent
            }
            #expect(isOnLoop)
        }
        #expect(order.withLock(\.self) == Array(0..<200))
        // On the loop itself it does not wait.
        #expect(bound.wait { loop in LoopBound(loop, to: loop).wait { $0.isCurrent } })
    }

    @Test("a gathering loop wakes the other once for all requests of a round, always before it waits")
    func gathersWakeUps() async throws {
        try await withLoop { loop in
            try await withLoop { other in
                let asking = Resident(on: loop)
                let asked = Resident(on: other)
                await asking.gather()
                for _ in 0..<200 {
                    let all = await asking.ask(asked, times: 50)
                    #expect(all)
                }
                #expect(await asked.seen.count == 10_000)
            }
        }
    }

    @Test(
        "of a gathering loop's closures `postSoon` waits for the end of the round, and `post` for nothing",
        arguments: [true, false])
    func gathersClosures(isSoon: Bool) async throws {
        try await withLoop { loop in
            try await withLoop { other in
                let asking = Resident(on: loop)
                await asking.gather()
                let began = Atomic(false)
                let wasEarly: Bool = await withCheckedContinuation { continuation in
                    // The other loop sleeps before it is given the closure.
                    loop.post {
                        _ = loop.after(.milliseconds(50)) {
                            if isSoon {
                                other.postSoon { began.store(true, ordering: .releasing) }
                                usleep(50_000)
                            } else {
                                // The caller waits, as one does who asks a thread of its own for a file.
                                other.post { began.store(true, ordering: .releasing) }
                                for _ in 0..<30_000 where !began.load(ordering: .acquiring) { usleep(1_000) }
                            }
                            continuation.resume(returning: began.load(ordering: .acquiring))
                        }
                    }
                }
                #expect(wasEarly == !isSoon)
                while !began.load(ordering: .acquiring) { try await Task.sleep(for: .milliseconds(1)) }
            }
        }
    }

    @Test("an actor on a loop runs on the loop's thread")
    func actorsRunOnTheirLoop() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            for _ in 0..<1000 { #expect(await resident.note("x")) }
            #expect(await resident.seen.count == 1000)
            #expect(!loop.isCurrent)
        }
    }

    @Test("timers fire in the order of their deadlines, and cancelled ones never")
    func timersFireInOrder() async throws {
        try await withLoop { loop in
            #expect(await Resident(on: loop).fireInOrder() == ["first", "second"])
        }
    }

    @Test(
        "timers made and cancelled in any order, by jobs and timers, fire if left, and none too early",
        .timeLimit(.minutes(1)))
    func timersInAnyOrder() async throws {
        try await withLoop { loop in
            let (left, fired) = await Resident(on: loop).fireInAnyOrder((0..<300).map { $0 * 7919 % 41 })
            #expect(fired.sorted() == left.sorted())
        }
    }

    @Test("a timer that is due before the one that the loop sleeps for wakes it")
    func soonerTimer() async throws {
        try await withLoop { loop in
            let resident = Resident(on: loop)
            await resident.set(.seconds(10))
            let start = SystemTime().bootTime
            // Time itself: it sleeps by then, which nothing tells. Each wait is set anew after the one before has fired.
            for _ in 0..<5 {
                usleep(20_000)
                await resident.wait(.milliseconds(1))
            }
            #expect(SystemTime().bootTime - start < .seconds(8))
        }
    }

    @Test("a descriptor that becomes readable calls its handler")
    func descriptorsCallBack() async throws {
        try await withLoop { loop in
            var ends: [Int32] = [0, 0]
            try #require(pipe(&ends) == 0)
            let output = Descriptor(ends[0])
            let input = Descriptor(ends[1])
            let resident = Resident(on: loop)
            async let byte = resident.readOnce(from: output.raw)
            var sent: UInt8 = 42
            #expect(write(input.raw, &sent, 1) == 1)
            #expect(try await byte == 42)
        }
    }

    @Test("a descriptor that cannot be watched is an error, not a crash")
    func regularFilesCannotBeWatched() async throws {
        try await withLoop { loop in
            let file = Descriptor(open("/etc/hostname", O_RDONLY | O_CLOEXEC))
            await #expect(throws: SystemError("epoll_ctl", number: EPERM)) {
                _ = try await Resident(on: loop).readOnce(from: file.raw)
            }
        }
    }

    @Test("closures posted from many threads all run, once each")
    func postedClosuresAllRun() async throws {
        try await withLoop { loop in
            let count = Atomic<Int>(0)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask { @Sendable in
                        for _ in 0..<1000 { loop.post { count.add(1, ordering: .relaxed) } }
                    }
                }
            }
            _ = await Resident(on: loop).note("after all of them")
            #expect(count.load(ordering: .relaxed) == 8000)
        }
    }

    @Test("a program's result is returned to the thread that ran it")
    func programsReturnTheirResult() throws {
        let result = try EventLoop.runProgram(name: "program", failure: { $0 as any Error }) { loop in
            await Resident(on: loop).note("x") ? 7 : 0
        }
        #expect(result == 7)
    }
}

@Suite("Clocks")
struct ClockTests {
    @Test(
        "milliseconds round down, also before 1970",
        arguments: [
            (1_500_000, 1), (999_999, 0), (0, 0), (-1, -1), (-1_000_000, -1), (-1_000_001, -2),
        ] as [(Int64, Int64)])
    func millisecondsRoundDown(nanoseconds: Int64, milliseconds: Int64) {
        #expect(Timestamp(nanoseconds: nanoseconds).milliseconds == milliseconds)
    }

    @Test("sums and differences saturate instead of trapping")
    func arithmeticSaturates() {
        #expect(Timestamp(milliseconds: .max).nanoseconds == .max)
        #expect((Timestamp(nanoseconds: .max) + .seconds(1)).nanoseconds == .max)
        #expect((Timestamp(nanoseconds: .min) - .seconds(Int64.max)).nanoseconds == .min)
        #expect(Timestamp(nanoseconds: .max) - Timestamp(nanoseconds: .min) == .nanoseconds(Int64.max))
        #expect((BootInstant(nanoseconds: 5) + .seconds(Int64.max)).nanoseconds == .max)
    }
}

@Suite("Kernel random")
struct KernelRandomTests {
    @Test("numbers do not repeat within a block, across blocks or between generators")
    func numbersDoNotRepeat() {
        let first = KernelRandom()
        let second = KernelRandom()
        var seen: Set<UInt64> = []
        for _ in 0..<2000 {
            seen.insert(first.next())
            seen.insert(second.next())
        }
        #expect(seen.count == 4000)
    }
}
