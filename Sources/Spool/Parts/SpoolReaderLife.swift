internal import EventLoops

/// The reader's life: its phase, what must end before it may stop, and its only timer.
///
/// Phases only go forward: idle, running, stopping, stopped.
struct SpoolReaderLife {
    /// The phases, in this order. In `stopping` a last commit stores the lines that were read.
    enum Phase: Int { case idle, running, stopping, stopped }

    private(set) var phase = Phase.idle
    /// Whether `pump` is posted to the loop; otherwise each `wake` would post another call.
    private var isPumpPosted = false
    /// The timer that is set to the agenda's next errand.
    private var alarm: EventLoop.TimerID?
    /// Commits, with the removals that follow them, that are under way.
    private var tasks = 0
    /// Callers of `stop`, resumed once the reader has stopped.
    private var stopWaiters: [CheckedContinuation<Void, Never>] = []

    var isRunning: Bool { phase == .running }

    // MARK: From start to stop

    /// True if the reader is to begin; false if it has begun before.
    mutating func start() -> Bool {
        guard phase == .idle else { return false }
        phase = .running
        return true
    }

    /// A caller waits for the end. False if nothing runs, so that the caller is not to wait.
    mutating func stop(_ waiter: CheckedContinuation<Void, Never>) -> Bool {
        guard phase == .running || phase == .stopping else {
            phase = .stopped
            return false
        }
        phase = .stopping
        stopWaiters.append(waiter)
        return true
    }

    /// Nothing can be committed any more. False if the reader has stopped before.
    mutating func fail() -> Bool {
        guard phase == .running || phase == .stopping else { return false }
        phase = .stopping
        return true
    }

    /// Ends the last phase if nothing is under way. Returns the callers to resume; nil if the reader must
    /// wait.
    mutating func end() -> [CheckedContinuation<Void, Never>]? {
        assert(phase == .stopping, "the reader stops without being told")
        guard tasks == 0 else { return nil }
        phase = .stopped
        defer { stopWaiters = [] }
        return stopWaiters
    }

    // MARK: What is under way

    /// Returns true if the caller must post `pump` to the loop.
    mutating func postPump() -> Bool {
        guard !isPumpPosted, phase == .running || phase == .stopping else { return false }
        isPumpPosted = true
        return true
    }

    mutating func pumpBegins() { isPumpPosted = false }

    mutating func beginTask() { tasks += 1 }

    mutating func endTask() {
        assert(tasks > 0, "a task ends that did not begin")
        tasks -= 1
    }

    // MARK: The timer

    mutating func set(_ timer: EventLoop.TimerID) {
        assert(alarm == nil, "a second timer is set")
        alarm = timer
    }

    /// Takes the timer, to cancel it or because it has fired.
    mutating func takeAlarm() -> EventLoop.TimerID? {
        defer { alarm = nil }
        return alarm
    }
}
