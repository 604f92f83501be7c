/// Lines on their way to the spool: a bounded buffer, and a thread that empties it into files at once. What is to gather for an
/// interval gathers there, under a name that the agent does not read: the end of the process takes nothing of it away.
///
/// All that changes is guarded by `monitor`, but `files`, which only the writing thread touches: that is what makes sharing
/// it between threads safe.
final class SpoolWriter: @unchecked Sendable {
    private let settings: ClientSettings
    private let monitor = Monitor()
    private var files: SpoolFiles

    private var pending: [UInt8] = []
    private var accepted = 0
    private var written = 0
    /// When the first event was taken that the agent may not see yet; nil for none.
    private var oldest: Int64?
    private var interval: Int64 = 0
    private var isUrgent = false
    private var isPaused = false
    private var isEnabled: Bool
    /// What of `isEnabled` is on the disk.
    private var keptEnabled: Bool
    private var isClosing = false
    private var hasEnded = false
    private var failure: AnalyticsError?
    /// Bytes that the thread is writing now; they count against the buffer until they are in the spool.
    private var writing = 0
    /// What the agent accepts, when that was read, and whether somebody wants to know it again.
    private var state: SpoolState
    private var stateReadAt: Int64
    private var isStateWanted = false

    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        files = try SpoolFiles(settings)
        isEnabled = files.isEnabled
        keptEnabled = files.isEnabled
        state = SpoolState.read(directory: settings.directory)
        stateReadAt = steadyNanoseconds()
        let started = startThread { [self] in run() }
        guard started else { throw AnalyticsError(.notWritable, "the system has no thread left for the writer") }
    }

    /// Until when a call that begins now may wait.
    func deadline() -> Int64 { steadyNanoseconds() + settings.longestWait.wholeNanoseconds }

    /// What the agent accepts, at most a second old for frequent callers.
    ///
    /// The writing thread reads it: a disk may take its time. While everything is accepted nobody waits for that, and an
    /// agent that has become full is heard of by the next call. One that accepted less is asked before an event is refused.
    func spoolState(until deadline: Int64) -> SpoolState {
        monitor.lock()
        defer { monitor.unlock() }
        guard steadyNanoseconds() - stateReadAt >= 1_000_000_000, !isClosing else { return state }
        if !isStateWanted {
            isStateWanted = true
            monitor.wakeAll()
        }
        _ = wait(until: deadline) { !isStateWanted || state.accepting == .all || isClosing }
        return state
    }

    /// Takes a line; throws when the buffer has no room until `deadline`, or the writer is closed.
    func take(_ line: [UInt8], isUrgent: Bool, until deadline: Int64) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        guard line.count <= settings.bufferSize else {
            throw AnalyticsError(.invalidEvent, "the event is larger than the buffer of \(settings.bufferSize) bytes")
        }
        let hasRoom = wait(until: deadline) {
            pending.count + writing + line.count <= settings.bufferSize || isClosing
        }
        guard hasRoom else {
            throw failure
                ?? AnalyticsError(.bufferFull, "\(pending.count + writing) bytes of events wait to be written")
        }
        guard !isClosing else { throw AnalyticsError(.closed, "the client is closed") }
        let isFirst = pending.isEmpty
        if oldest == nil { oldest = steadyNanoseconds() }
        pending += line
        accepted += 1
        if isUrgent { self.isUrgent = true }
        if isFirst || isUrgent { monitor.wakeAll() }
    }

    /// Waits until all that was taken before is written, for the agent to see unless paused, and the switch with it.
    func flush(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = accepted
        isUrgent = true
        monitor.wakeAll()
        try wait(timeout) { written >= wanted && !isUrgent && isEnabled == keptEnabled }
    }

    private func wait(_ timeout: Duration, until isDone: () -> Bool) throws(AnalyticsError) {
        guard !wait(until: steadyNanoseconds() + timeout.wholeNanoseconds, isDone) else { return }
        throw failure ?? AnalyticsError(.timedOut, "\(accepted - written) events still wait to be written")
    }

    /// Waits, the monitor held, until what was wanted is done; false when the time is over first.
    private func wait(until deadline: Int64, _ isDone: () -> Bool) -> Bool {
        while !isDone() {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else { return false }
            monitor.wait(nanoseconds: left)
        }
        return true
    }

    func setInterval(_ value: Duration) { change { interval = value.wholeNanoseconds } }
    func setPaused(_ value: Bool) { change { isPaused = value } }
    func setEnabled(_ value: Bool) { change { isEnabled = value } }
    func whetherPaused() -> Bool { monitor.sync { isPaused } }
    func gatheringInterval() -> Duration { .nanoseconds(monitor.sync { interval }) }
    /// What the switch says, as an earlier process of this name may have left it.
    func whetherEnabled() -> Bool { monitor.sync { isEnabled } }

    /// Writes what waits, within the time, and ends the thread.
    func close(timeout: Duration) throws(AnalyticsError) {
        change { isClosing = true }
        monitor.lock()
        defer { monitor.unlock() }
        try wait(timeout) { hasEnded }
    }

    private func change(_ body: () -> Void) {
        monitor.sync {
            body()
            monitor.wakeAll()
        }
    }

    private func run() {
        monitor.lock()
        while true {
            waitForWork()
            let lines = pending
            let upTo = accepted
            let (isHeld, wantsEnabled, isLast) = (isHolding, isEnabled, isClosing)
            pending = []
            writing = lines.count
            let wasUrgent = isUrgent
            monitor.unlock()
            let problem = write(lines, isHeld: isHeld, isEnabled: wantsEnabled)
            monitor.lock()
            failure = problem
            writing = 0
            if problem == nil {
                written = upTo
                keptEnabled = wantsEnabled
                if !isHeld || isPaused { oldest = pending.isEmpty ? nil : steadyNanoseconds() }
                // What became urgent meanwhile is looked at again.
                if wasUrgent, pending.isEmpty { isUrgent = false }
            } else {
                pending = lines + pending
            }
            monitor.wakeAll()
            if isLast, problem == nil, pending.isEmpty { break }
            // A disk that is full now may have room in a second.
            if problem != nil { monitor.wait(nanoseconds: 1_000_000_000) }
        }
        monitor.unlock()
        // A pause ends with its client; if that fails here, the next client of this name finds what was kept back.
        try? files.hold(false)
        files.end()
        change { hasEnded = true }
    }

    /// How long what was taken has to gather still, in nanoseconds; nil when nothing has to.
    private var timeToGather: Int64? {
        guard interval > 0, !isUrgent, !isClosing, let oldest else { return nil }
        let left = oldest + interval - steadyNanoseconds()
        return left > 0 ? left : nil
    }

    /// Whether what is written now is to be kept from the agent.
    private var isHolding: Bool { isPaused || timeToGather != nil }

    /// Returns when there is something to do: lines, a change between kept from the agent and not, or of the switch, the end.
    private func waitForWork() {
        while !isClosing, !isUrgent, pending.isEmpty, isEnabled == keptEnabled, isHolding == files.isHolding {
            if isStateWanted {
                // Others went on meanwhile: all of it is to be looked at again.
                readState()
            } else if !isPaused, let left = timeToGather {
                monitor.wait(nanoseconds: left)
            } else {
                monitor.wait()
            }
        }
    }

    /// Reads what the agent accepts, without keeping others from the buffer.
    private func readState() {
        monitor.unlock()
        let found = SpoolState.read(directory: settings.directory)
        monitor.lock()
        state = found
        stateReadAt = steadyNanoseconds()
        isStateWanted = false
        monitor.wakeAll()
    }

    private func write(_ lines: [UInt8], isHeld: Bool, isEnabled: Bool) -> AnalyticsError? {
        do throws(AnalyticsError) {
            try files.keep(isEnabled: isEnabled)
            try files.hold(isHeld)
            if !lines.isEmpty { try files.append(lines) }
            return nil
        } catch {
            return error
        }
    }
}

extension Duration {
    /// In nanoseconds, at most about 146 years.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return min(max(seconds, -4_611_686_018), 4_611_686_018) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
