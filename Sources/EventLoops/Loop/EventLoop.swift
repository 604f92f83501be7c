// EventLoops: threads over epoll that execute actors, and the thin layer over Linux that all modules
// share: clocks, descriptors, files, sockets, errors.
//
// It promises:
// - A loop without work sleeps. It waits in `epoll_wait` without a timeout, and no timer, descriptor or
//   task wakes it without a cause.
// - A descriptor is closed exactly once (`Descriptor` cannot be copied).
// - A time or size from outside cannot overflow: `Timestamp`, `BootInstant` and `FileStatus` saturate.
// - A clock that is set neither ends a wait early nor prolongs it: waits use CLOCK_BOOTTIME.
//
// Its parts:
// - Loop/: `EventLoop` (jobs, descriptors, timers), `LoopActor` (an actor executed by a loop),
//   `LoopBound` (a value that only one loop may use), `Turnstile` (tasks that take turns),
//   `SignalWatcher`.
// - Time/: `Clocks` (`BootInstant` for waits, `Timestamp` for the time of day, `TimeSource` for tests),
//   `ClockSteps` and `ClockWatcher` (the clock was set), `LocalDate`.
// - Files/: `Descriptor`, `FileStatus`, `WholeFile` (atomic replacement), `RealPath`, `SilentFiles`
//   (file systems that may never answer), `InternetSocket`.
// - `SystemError` and `CodedError` (errors), `PrintableText` (escaping), `Saturation`, `KernelRandom`
//   and `RepeatableRandom`.
//
// Its rules:
// - One thread for each loop. The methods of a loop must be called on its thread, except `post`,
//   `enqueue` and `stop`; `precondition` enforces it.
// - A handler must not block. Calls that may block for long have threads of their own (`SilentFiles`).
// - Neither Swift's default executor nor Dispatch is used: both wake an idle process once a second.
// - It knows nothing about events, files of the spool, or HTTP.
//
// Begin with `EventLoop.run`, then `enqueue` and `watch`.

internal import CLinux
internal import Glibc
internal import Synchronization

/// One thread over epoll, which is also the executor of the actors that live on it.
///
/// An actor that names a loop as its `unownedExecutor` runs only on that loop's thread. The compiler
/// checks its isolation, it needs no locks, and descriptors and timers call back on the thread it
/// already runs on (`assumeIsolated`).
public final class EventLoop: SerialExecutor, TaskExecutor {
    /// What a descriptor is ready for: the events of epoll_ctl(2).
    public struct Readiness: OptionSet, Sendable {
        /// The bits of `epoll_event.events`.
        public let rawValue: UInt32

        /// Wraps bits of epoll_ctl(2).
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Data to read, or the end of the data.
        public static let readable = Readiness(rawValue: EPOLLIN.rawValue)
        /// Room to write.
        package static let writable = Readiness(rawValue: EPOLLOUT.rawValue)
        /// An error; reported whether requested or not.
        public static let failed = Readiness(rawValue: EPOLLERR.rawValue)
        /// The other end is closed; reported whether requested or not.
        public static let hungUp = Readiness(rawValue: EPOLLHUP.rawValue)
        /// Reports each change once, rather than for as long as it lasts.
        static let edge = Readiness(rawValue: EPOLLET.rawValue)
        /// Exceptional data, which `/proc/self/mountinfo` signals when a mount changes.
        public static let priority = Readiness(rawValue: EPOLLPRI.rawValue)
    }

    /// Identifies a timer, to cancel it.
    public struct TimerID: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    /// The handler of a watched descriptor.
    private struct Watch {
        /// Number of the `watch` call. The kernel returns it with each event, so that an event for an
        /// earlier descriptor with the same number is recognised.
        let generation: UInt32
        let handler: (Readiness) -> Void
    }

    /// A timer that has not fired yet.
    private struct Timer {
        let deadline: BootInstant
        let id: TimerID
        let fire: () -> Void
    }

    /// Work for the loop's thread.
    private enum Job {
        case task(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    /// Jobs from other threads and from the loop itself.
    private struct Inbox {
        var jobs: [Job] = []
        /// Whether the loop waits without a timeout. Only then must it be woken, which saves a system
        /// call for each job of a busy loop.
        var isAsleep = false
    }

    /// Rounds of jobs before descriptors are checked. Without a limit, jobs that create jobs would keep
    /// the loop from reading its descriptors.
    private static let mostRounds = 16

    /// Name of the thread, as `ps -T` shows it.
    public let name: String

    private let time: SystemTime
    /// The epoll(7) instance that the thread waits on.
    private let epoll: Descriptor
    /// An eventfd(2) that other threads write to, so that `epoll_wait` returns.
    let wakeup: Descriptor
    /// A timerfd(2) set to the first deadline.
    private let timer: Descriptor
    /// Jobs from all threads. The lock is held for an append or a swap only.
    private let inbox = Mutex(Inbox())
    /// Kernel id of the loop's thread; 0 while no thread runs the loop.
    private let thread = Atomic<UInt64>(0)

    // The loop's own state. It is used on the loop's thread only; `precondition(isCurrent)` guards each
    // public method.
    nonisolated(unsafe) private var watches: [Int32: Watch] = [:]
    /// Timers in the order of their deadlines.
    nonisolated(unsafe) private var timers: [Timer] = []
    nonisolated(unsafe) private var nextTimer: UInt64 = 0
    /// The deadline that the kernel's timer is set to; nil if it is not set.
    nonisolated(unsafe) private var armed: BootInstant?
    /// Number of the last `watch` call.
    nonisolated(unsafe) private var nextGeneration: UInt32 = 0
    /// Whether `run` should return; set by `stop` on the loop's thread.
    nonisolated(unsafe) private var stopping = false
    /// Array that changes places with the inbox in each round, so that neither is allocated again.
    nonisolated(unsafe) private var running: [Job] = []
    /// Whether other loops are woken once per round (`gatherWakeUps`).
    nonisolated(unsafe) var gathersWakeUps = false
    /// Loops that this round has given tasks and that sleep.
    nonisolated(unsafe) var toWake: [EventLoop] = []

    /// A loop without a thread: `start` creates one, `run` uses the calling thread.
    ///
    /// - Throws: `SystemError` if the process has no descriptors left.
    public init(name: String) throws(SystemError) {
        self.name = name
        time = SystemTime()
        epoll = try Descriptor(checking: epoll_create1(Int32(EPOLL_CLOEXEC)), "epoll_create1")
        wakeup = try Descriptor(checking: eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK)), "eventfd")
        timer = try Descriptor(
            checking: timerfd_create(CLOCK_BOOTTIME, Int32(TFD_CLOEXEC | TFD_NONBLOCK)),
            "timerfd_create")
        // Edge-triggered: each write or expiry wakes the loop once, and nothing has to be read to clear
        // it.
        try control(EPOLL_CTL_ADD, wakeup.raw, [.readable, .edge], generation: 0)
        try control(EPOLL_CTL_ADD, timer.raw, [.readable, .edge], generation: 0)
    }

    /// Whether the caller is on this loop's thread.
    public var isCurrent: Bool { threadID == clinux_thread_id() }

    /// Kernel id of the loop's thread; 0 while no thread runs the loop.
    var threadID: UInt64 { thread.load(ordering: .relaxed) }

    /// Runs a task's next part on the loop's thread. From any thread; called by Swift's runtime.
    public func enqueue(_ job: consuming ExecutorJob) {
        if put(.task(UnownedJob(job))) {
            wakeUpOrGather()
        }
    }

    /// Runs a closure on the loop's thread, after its present work. From any thread.
    public func post(_ closure: @escaping @Sendable () -> Void) {
        if put(.closure(closure)) {
            wakeUp()
        }
    }

    /// Runs a closure as `post` does. A loop that gathers wake-ups (`gatherWakeUps`) wakes this one only at
    /// the end of its round, so the caller must not wait for the closure.
    public func postSoon(_ closure: @escaping @Sendable () -> Void) {
        if put(.closure(closure)) {
            wakeUpOrGather()
        }
    }

    /// Wakes the loop now, or at the end of the round of a loop that gathers wake-ups.
    private func wakeUpOrGather() {
        if let current = EventLoop.current, current.gathersWakeUps {
            current.toWake.append(self)
        } else {
            wakeUp()
        }
    }

    /// Traps if the caller is not on the loop's thread; called by Swift's runtime for `assumeIsolated`.
    public func checkIsolated() {
        precondition(isCurrent, "not on the thread of loop \(name)")
    }

    /// Whether the caller is on the loop's thread; called by Swift's runtime.
    public func isIsolatingCurrentContext() -> Bool? { isCurrent }

    /// The loop as the preference of a task: `Task(executorPreference: loop)`.
    public func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    /// Calls `handler` whenever the descriptor is ready (level-triggered), until `forget`. On the
    /// loop's thread.
    ///
    /// Watching a descriptor again replaces its readiness and handler.
    /// - Throws: `SystemError` if the descriptor cannot be watched, such as that of a regular file.
    public func watch(
        _ descriptor: Int32, for readiness: Readiness, _ handler: @escaping (Readiness) -> Void
    ) throws(SystemError) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        nextGeneration &+= 1
        let known = watches[descriptor] != nil
        try control(known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, readiness, generation: nextGeneration)
        watches[descriptor] = Watch(generation: nextGeneration, handler: handler)
    }

    /// Ends a watch. Must be called before the descriptor is closed: its number may be reused at once.
    /// Descriptors that are not watched are ignored.
    public func forget(_ descriptor: Int32) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard watches.removeValue(forKey: descriptor) != nil else { return }
        // This fails only for a descriptor that is closed already, which the kernel has removed by
        // itself.
        _ = epoll_ctl(epoll.raw, Int32(EPOLL_CTL_DEL), descriptor, nil)
    }

    /// Calls `fire` once, no earlier than `wait` from now, by the boot-time clock. On the loop's
    /// thread.
    @discardableResult
    public func after(_ wait: Duration, _ fire: @escaping () -> Void) -> TimerID {
        at(time.bootTime + wait, fire)
    }

    /// Calls `fire` once, no earlier than at `deadline`. On the loop's thread.
    @discardableResult
    public func at(_ deadline: BootInstant, _ fire: @escaping () -> Void) -> TimerID {
        precondition(isCurrent, "not on the thread of loop \(name)")
        nextTimer += 1
        let id = TimerID(number: nextTimer)
        // Few timers exist at a time and a new one usually belongs near the end, so the search starts
        // there.
        let index = timers.lastIndex { $0.deadline <= deadline }.map { $0 + 1 } ?? 0
        timers.insert(Timer(deadline: deadline, id: id, fire: fire), at: index)
        return id
    }

    /// Cancels a timer; ignored if it has fired or was cancelled.
    public func cancel(_ id: TimerID) {
        precondition(isCurrent, "not on the thread of loop \(name)")
        guard let index = timers.firstIndex(where: { $0.id == id }) else { return }
        timers.remove(at: index)
    }

    /// Runs the loop on the calling thread until `stop`.
    public func run() {
        let (_, old) = thread.compareExchange(
            expected: 0, desired: clinux_thread_id(), ordering: .acquiringAndReleasing)
        precondition(old == 0, "loop \(name) has a thread already")
        let outer = clinux_thread_mark(Unmanaged.passUnretained(self).toOpaque())
        defer { _ = clinux_thread_mark(outer) }
        let events = UnsafeMutablePointer<epoll_event>.allocate(capacity: 64)
        defer { events.deallocate() }
        while !stopping {
            // Jobs created by jobs run at once, for a limited number of rounds; then descriptors are
            // checked.
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

    /// Ends `run` after the loop's present work. From any thread. Jobs that arrive later never run.
    public func stop() {
        post { self.stopping = true }
    }

    /// Handles one event of `epoll_wait`.
    private func dispatch(_ event: epoll_event) {
        let descriptor = Int32(truncatingIfNeeded: event.data.u64)
        let generation = UInt32(truncatingIfNeeded: event.data.u64 >> 32)
        if descriptor == wakeup.raw {
            // The next round runs the jobs that were added.
        } else if descriptor == timer.raw {
            armed = nil
            fireTimers()
        } else if let watch = watches[descriptor], watch.generation == generation {
            // An event of an older generation belongs to a descriptor that was closed meanwhile and whose
            // number was reused.
            watch.handler(Readiness(rawValue: event.events))
        }
    }

    /// Runs the jobs in the inbox; false if it was empty.
    private func runJobs() -> Bool {
        inbox.withLock { inbox in
            inbox.isAsleep = false
            swap(&inbox.jobs, &running)
        }
        guard !running.isEmpty else { return false }
        for job in running {
            switch job {
            case .task(let task):
                task.runSynchronously(
                    isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            case .closure(let closure):
                closure()
            }
        }
        running.removeAll(keepingCapacity: true)
        return true
    }

    /// Fires the timers that are due. Each is removed first, because it may add or cancel timers.
    private func fireTimers() {
        let now = time.bootTime
        while let first = timers.first, first.deadline <= now {
            timers.removeFirst()
            first.fire()
        }
    }

    /// Sets the kernel's timer to the first deadline. Called once before the loop may sleep, so that
    /// timers which jobs add and cancel in between cost no system call.
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
            // bounded: a remainder below a second.
            specification.it_value.tv_nsec = Int(point % 1_000_000_000)
        }
        let result = timerfd_settime(timer.raw, Int32(TFD_TIMER_ABSTIME), &specification, nil)
        precondition(result == 0, "timerfd_settime: \(SystemError.message(errno))")
    }

    /// Adds a job; returns whether the loop must be woken for it. Not if the caller is on the loop's
    /// thread, which checks for jobs before it sleeps.
    private func put(_ job: Job) -> Bool {
        let wasAsleep = inbox.withLock { inbox in
            inbox.jobs.append(job)
            defer { inbox.isAsleep = false }
            return inbox.isAsleep
        }
        return wasAsleep && !isCurrent
    }

    /// Calls epoll_ctl(2); descriptor and generation come back with each event.
    private func control(
        _ operation: Int32, _ descriptor: Int32, _ readiness: Readiness, generation: UInt32
    ) throws(SystemError) {
        let data = UInt64(UInt32(bitPattern: descriptor)) | UInt64(generation) << 32
        var event = epoll_event(events: readiness.rawValue, data: epoll_data_t(u64: data))
        guard epoll_ctl(epoll.raw, operation, descriptor, &event) == 0 else { throw SystemError("epoll_ctl") }
    }
}
