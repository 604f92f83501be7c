//  EventLoops: one thread each over epoll, the executor of the actors that live on it; clocks; descriptors.
//  Promise: a loop with nothing to do sleeps; nothing here wakes it without a cause.
//  It knows nothing of events, files or HTTP.

internal import CLinux
internal import Glibc
internal import Synchronization

/// One thread over epoll that is also the executor of the actors that live on it.
///
/// An actor that names a loop as its `unownedExecutor` runs on that loop's thread only: the compiler checks its
/// isolation, it needs no locks, and descriptors and timers call it back where it already is (`assumeIsolated`).
/// A loop with nothing to do sleeps in `epoll_wait` without a timeout.
///
/// Swift's default executor and Dispatch are not used anywhere: either wakes an idle process once a second.
public final class EventLoop: SerialExecutor, TaskExecutor {
    /// What a descriptor is ready for.
    public struct Readiness: OptionSet, Sendable {
        /// The bits of `epoll_event.events`.
        public let rawValue: UInt32

        /// A set of the kernel's bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// There is something to read, or the end of it.
        public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        package static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// Something went wrong; always told, asked for or not.
        public static let failed = Readiness(rawValue: EPOLLERR.rawValue)
        /// The other end is gone; always told, asked for or not.
        public static let hungUp = Readiness(rawValue: EPOLLHUP.rawValue)
        /// Told once for each change, not for as long as it lasts.
        static let edge = Readiness(rawValue: EPOLLET.rawValue)
        /// Exceptional data, as `/proc/mounts` gives when a mount changes.
        public static let priority = Readiness(rawValue: EPOLLPRI.rawValue)
    }

    /// Names a timer, to cancel it.
    public struct TimerID: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct Watch {
        let generation: UInt32
        let handler: (Readiness) -> Void
    }

    private struct Timer {
        let deadline: BootInstant
        let id: TimerID
        let fire: () -> Void
    }

    private enum Job {
        case task(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    /// What other threads, and the loop itself, want run.
    private struct Inbox {
        var jobs: [Job] = []
        /// Whether the loop waits without a timeout: only then has it to be woken.
        var isAsleep = false
    }

    /// How many rounds of jobs run before descriptors are looked at.
    private static let mostRounds = 16

    /// The thread's name, as `ps -T` shows it.
    public let name: String

    private let time: SystemTime
    private let epoll: Descriptor
    let wakeup: Descriptor
    private let timer: Descriptor
    private let inbox = Mutex(Inbox())
    private let thread = Atomic<UInt64>(0)

    // The loop's own state: touched on its thread only; `precondition(isCurrent)` guards each way in.
    nonisolated(unsafe) private var watches: [Int32: Watch] = [:]
    nonisolated(unsafe) private var timers: [Timer] = []
    nonisolated(unsafe) private var nextTimer: UInt64 = 0
    /// The deadline that the kernel's timer is set to; nil: to none.
    nonisolated(unsafe) private var armed: BootInstant?
    nonisolated(unsafe) private var nextGeneration: UInt32 = 0
    nonisolated(unsafe) private var stopping = false
    nonisolated(unsafe) private var running: [Job] = []
    nonisolated(unsafe) var gathersWakeUps = false
    nonisolated(unsafe) var toWake: [EventLoop] = []

    /// A loop without a thread; `start` gives it one, `run` makes the calling thread its own.
    ///
    /// - Throws: `SystemError` when the process has no descriptors left.
    public init(name: String) throws(SystemError) {
        self.name = name
        time = SystemTime()
        epoll = try Descriptor(checking: epoll_create1(Int32(EPOLL_CLOEXEC)), "epoll_create1")
        wakeup = try Descriptor(checking: eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)), "eventfd")
        timer = try Descriptor(
            checking: timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)),
            "timerfd_create")
        // Edge-triggered: each write or expiry wakes the loop once, and nothing has to be read back.
        try control(EPOLL_CTL_ADD, wakeup.raw, [.readable, .edge], generation: 0)
        try control(EPOLL_CTL_ADD, timer.raw, [.readable, .edge], generation: 0)
    }

    /// Whether the caller runs on this loop's thread.
    public var isCurrent: Bool { threadID == clinux_thread_id() }

    /// As the kernel has it; 0 where nothing runs.
    var threadID: UInt64 { thread.load(ordering: .relaxed) }

    // MARK: Executor

    /// Runs a task's next piece on the loop's thread. From any thread; called by Swift's runtime.
    public func enqueue(_ job: consuming ExecutorJob) {
        guard put(.task(UnownedJob(job))) else { return }
        if let current = EventLoop.current, current.gathersWakeUps {
            current.toWake.append(self)
        } else {
            wakeUp()
        }
    }

    /// Runs a closure on the loop's thread, after what it does now. From any thread.
    public func post(_ closure: @escaping @Sendable () -> Void) {
        if put(.closure(closure)) { wakeUp() }
    }

    /// Traps when the caller is not on the loop's thread; called by Swift's runtime for `assumeIsolated`.
    public func checkIsolated() {
        precondition(isCurrent, "not on the thread of loop \(name)")
    }

    /// Whether the caller is on the loop's thread; called by Swift's runtime.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// The loop as the preference of a task: `Task(executorPreference: loop)`.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    // MARK: Descriptors (on the loop's thread)

    /// Calls `handler` whenever the descriptor is ready (level-triggered), until `forget`.
    ///
    /// Watching a descriptor again replaces what is watched for and the handler.
    /// - Throws: `SystemError` if the descriptor cannot be watched (a regular file, or none at all).
    public func watch(
        _ descriptor: Int32, for readiness: Readiness, _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        nextGeneration &+= 1
        let known = watches[descriptor] != nil
        try control(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, readiness, generation: nextGeneration)
        watches[descriptor] = Watch(generation: nextGeneration, handler: handler)
    }

    /// Ends a watch. To be called before the descriptor is closed; unknown ones are ignored.
    public func forget(_ descriptor: Int32) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard watches.removeValue(forKey: descriptor) != nil else { return }
        // Fails only for a descriptor that was closed already, and then the kernel has forgotten it.
        _ = epoll_ctl(epoll.raw, Int32(EPOLL_CTL_DEL), descriptor, nil)
    }

    // MARK: Timers (on the loop's thread)

    /// Calls `fire` once, no earlier than `wait` from now, on the boot-time clock.
    @discardableResult
    public func after(_ wait: Duration, _ fire: @escaping () -> Void) -> TimerID {
        at(time.bootTime + wait, fire)
    }

    /// Calls `fire` once, no earlier than the given point.
    @discardableResult
    public func at(_ deadline: BootInstant, _ fire: @escaping () -> Void) -> TimerID {
        precondition(isCurrent, "not on the thread of loop \(name)")
        nextTimer += 1
        let id = TimerID(number: nextTimer)
        // Few timers live at a time, most of them at the end: searching from there is the short way.
        let index = timers.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
        timers.insert(Timer(deadline: deadline, id: id, fire: fire), at: index)
        return id
    }

    /// Ends a timer that has not fired; others are ignored.
    public func cancel(_ id: TimerID) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard let index = timers.firstIndex(where: { $0.id == id }) else { return }
        timers.remove(at: index)
    }

    // MARK: The loop

    /// Makes the calling thread the loop's own until `stop`.
    public func run() {
        let (_, old) = thread.compareExchange(
            expected: 0, desired: clinux_thread_id(), ordering: .acquiringAndReleasing)
        precondition(old == 0, "loop \(name) has a thread already")
        let outer = clinux_thread_mark(Unmanaged.passUnretained(self).toOpaque())
        defer { _ = clinux_thread_mark(outer) }
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: 64)
        defer { events.deallocate() }
        while !stopping {
            // Jobs that follow from jobs run at once, for some rounds; then descriptors get their turn.
            var rounds = 0
            while runJobs(), !stopping, rounds < EventLoop.mostRounds { rounds += 1 }
            wakeOthers()
            if stopping { break }
            arm()
            let isIdle = inbox.withLock { inbox in
                inbox.isAsleep = inbox.jobs.isEmpty
                return inbox.isAsleep
            }
            let count = epoll_wait(epoll.raw, events, 64, isIdle ? -1 : 0)
            guard count >= 0 else {
                precondition(errno == EINTR, "epoll_wait: \(SystemError.message(errno))")
                continue
            }
            for index in 0..<Int(count) { dispatch(events[index]) }
        }
        watches.removeAll()
        timers.removeAll()
        thread.store(0, ordering: .releasing)
    }

    /// Ends `run` after what the loop does now. From any thread. Jobs that arrive later are never run.
    public func stop() {
        post { self.stopping = true }
    }

    private func dispatch(_ event: epoll_event) {
        let descriptor = Int32(truncatingIfNeeded: event.data.u64)
        let generation = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        if descriptor == wakeup.raw {
            // The jobs that it tells of are run next.
        } else if descriptor == timer.raw {
            armed = nil
            fireTimers()
        } else if let watch = watches[descriptor], watch.generation == generation {
            // An event of an older generation belongs to a descriptor that was closed since: its number came back.
            watch.handler(Readiness(rawValue: event.events))
        }
    }

    /// Runs what is in the inbox, which changes place with an empty array, to be used again; false when it was empty.
    private func runJobs() -> Bool {
        inbox.withLock { inbox in
            inbox.isAsleep = false
            swap(&inbox.jobs, &running)
        }
        guard !running.isEmpty else { return false }
        for job in running {
            switch job {
            case .task(let task):
                task.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            case .closure(let closure):
                closure()
            }
        }
        running.removeAll(keepingCapacity: true)
        return true
    }

    private func fireTimers() {
        let now = time.bootTime
        while let first = timers.first, first.deadline <= now {
            timers.removeFirst()
            first.fire()
        }
    }

    /// Sets the kernel's timer to the first deadline, once before it may sleep: what jobs add and cancel meanwhile costs no call.
    private func arm() {
        let deadline = timers.first?.deadline
        guard deadline != armed else { return }
        armed = deadline
        var specification = itimerspec()
        if let deadline {
            // An absolute time of zero would disarm the timer.
            let point = max(1, deadline.nanoseconds)
            // bounded: our own numbers, divided.
            specification.it_value.tv_sec = Int(point / 1_000_000_000)
            // bounded: as above.
            specification.it_value.tv_nsec = Int(point % 1_000_000_000)
        }
        let result = timerfd_settime(timer.raw, Int32(TFD_TIMER_ABSTIME), &specification, nil)
        precondition(result == 0, "timerfd_settime: \(SystemError.message(errno))")
    }

    /// Whether the loop has to be woken for it; not on its own thread, which looks for jobs before it sleeps.
    private func put(_ job: Job) -> Bool {
        let wasAsleep = inbox.withLock { inbox in
            inbox.jobs.append(job)
            defer { inbox.isAsleep = false }
            return inbox.isAsleep
        }
        return wasAsleep && !isCurrent
    }

    private func control(
        _ operation: Int32, _ descriptor: Int32, _ readiness: Readiness, generation: UInt32
    ) throws(SystemError) {
        let data = UInt64(UInt32(bitPattern: descriptor)) | UInt64(generation) << 32
        var event = epoll_event(events: readiness.rawValue, data: epoll_data_t(u64: data))
        guard epoll_ctl(epoll.raw, operation, descriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
    }
}
