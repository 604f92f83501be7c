import EventLoops
import Glibc
import Synchronization
import Testing

/// Sets the clock forward by a nanosecond: the kernel tells of it as of any step. False without CAP_SYS_TIME.
@Sendable private func stepClock() -> Bool {
    typealias Adjust = @convention(c) (UnsafeMutableRawPointer) -> Int32
    // Glibc's module hides adjtimex(2). `struct timex` begins with `modes`; ADJ_SETOFFSET | ADJ_NANO, and
    // at byte 80 the offset's nanoseconds.
    guard let symbol = dlsym(nil, "adjtimex") else { return false }
    var change = [UInt32](repeating: 0, count: 128)
    change[0] = 0x2100
    change[20] = 1
    return unsafeBitCast(symbol, to: Adjust.self)(&change) >= 0
}

@Suite("Steps of the clock")
struct ClockWatcherTests {
    @Test(
        "each step of the time of day is reported, and nothing else is",
        .enabled(if: stepClock(), "NOT TESTED: needs CAP_SYS_TIME to set the clock"))
    func fault21_stepsAreTold() throws {
        let loop = try EventLoop(name: "clock")
        try loop.start()
        defer { loop.stop() }
        let told = Mutex(0)
        let isWatching = Mutex<Bool?>(nil)
        loop.post {
            let watcher = try? ClockWatcher(on: loop) { told.withLock { $0 += 1 } }
            isWatching.withLock { $0 = watcher != nil }
            // It must outlive the closure: the loop goes first.
            if let watcher { _ = Unmanaged.passRetained(watcher) }
        }
        let deadline = SystemTime().bootTime + .seconds(30)
        while isWatching.withLock({ $0 }) == nil, SystemTime().bootTime < deadline { usleep(1000) }
        try #require(isWatching.withLock { $0 } == true)
        #expect(told.withLock { $0 } == 0)
        for step in 1...3 {
            #expect(stepClock())
            while told.withLock({ $0 }) < step, SystemTime().bootTime < deadline { usleep(1000) }
            #expect(told.withLock { $0 } >= step)
        }
    }
}
