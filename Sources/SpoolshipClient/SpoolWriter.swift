/// Takes lines into a bounded buffer, which a thread of its own writes to files at once. With an interval,
/// lines gather in a file under a name that the agent does not read, not in memory, so that the end of the
/// process loses none.
///
/// Unchecked: all that changes is guarded by `monitor`, except `files`, which only the writing thread uses.
final class SpoolWriter: @unchecked Sendable {
    /// The settings, checked by the client.
    private let settings: ClientSettings
    /// Guards all fields below but `files`; its condition wakes the thread and the waiting callers.
    private let monitor = Monitor()
    /// The files. Only the writing thread uses them after `init`.
    private var files: SpoolFiles
    /// Names of the files, a copy for other threads.
    private let names: SpoolFileNames

    /// Lines that wait to be written.
    private var pending: [UInt8] = []
    /// Number of lines that were taken.
    private var accepted = 0
    /// Number of lines that are in the spool. `flush` waits until it reaches `accepted`.
    private var written = 0
    /// Time at which the first line was taken that the agent may not see yet; nil if it may see all. The
    /// interval counts from it.
    private var oldest: Int64?
    /// How long lines gather, in nanoseconds; 0 does not gather.
    private var interval: Int64 = 0
    /// Whether what waits is to be written for the agent to see now, whatever the interval.
    private var isUrgent = false
    /// Whether the append file is to be finished: the agent removes a finished file when it has read it,
    /// which tells `dispatch` that its events are queued.
    private var isHandingOver = false
    /// Whether lines are kept back.
    private var isPaused = false
    /// Whether the client accepts events.
    private var isEnabled: Bool
    /// The value of `isEnabled` that is on the disk.
    private var keptEnabled: Bool
    /// Whether the client is closing. No more lines are taken.
    private var isClosing = false
    /// Whether the thread has ended.
    private var hasEnded = false
    /// Why the last write failed; nil after a success.
    private var failure: AnalyticsError?
    /// Bytes that the thread is writing. They count against the buffer until they are in the spool.
    private var writing = 0
    /// The agent's state when it was last read.
    private var state: SpoolState
    /// When `state` was read.
    private var stateReadAt: Int64
    /// Whether a caller waits for `state` to be read again.
    private var isStateWanted = false

    /// Opens the directory, and starts the thread.
    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        files = try SpoolFiles(settings)
        names = files.names
        isEnabled = files.isEnabled
        keptEnabled = files.isEnabled
        state = SpoolState.read(directory: settings.directory)
        stateReadAt = steadyNanoseconds()
        let started = startThread { [self] in run() }
        guard started else {
            throw AnalyticsError(.notWritable, "the system has no thread left for the writer")
        }
    }

    /// Time until which a call that begins now may wait.
    func deadline() -> Int64 { steadyNanoseconds() + settings.longestWait.wholeNanoseconds }

    /// What the agent accepts; at most about a second old for frequent callers.
    ///
    /// The writing thread reads the file, because a disk may be slow. While the agent accepts everything, no
    /// caller waits for that, and the next call sees if it has become full. If it accepted less, a caller
    /// waits for the new state, so that no event is refused by an old one.
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

    /// Takes a line.
    ///
    /// - Parameter isUrgent: a critical event; it ends the interval, unless events wait until they are asked
    ///   for.
    /// - Throws: `bufferFull`, or why writing fails, if there is no room until `deadline`; `closed`;
    ///   `invalidEvent` for a line larger than the buffer.
    func take(_ line: [UInt8], isUrgent: Bool, until deadline: Int64) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        guard line.count <= settings.bufferSize else {
            throw AnalyticsError(
                .invalidEvent, "the event is larger than the buffer of \(settings.bufferSize) bytes")
        }
        let hasRoom = wait(until: deadline) {
            pending.count + writing + line.count <= settings.bufferSize || isClosing
        }
        guard hasRoom else {
            throw failure
                ?? AnalyticsError(
                    .bufferFull, "\(pending.count + writing) bytes of events wait to be written")
        }
        guard !isClosing else { throw AnalyticsError(.closed, "the client is closed") }
        let isFirst = pending.isEmpty
        if oldest == nil {
            oldest = steadyNanoseconds()
        }
        pending += line
        accepted += 1
        if isUrgent, interval < SpoolWriter.untilAsked {
            self.isUrgent = true
        }
        if isFirst || isUrgent {
            monitor.wakeAll()
        }
    }

    /// Waits until all lines that were taken before are written, for the agent to see unless paused, and
    /// `isEnabled` with them.
    func flush(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = accepted
        isUrgent = true
        monitor.wakeAll()
        try wait(timeout) { written >= wanted && !isUrgent && isEnabled == keptEnabled }
    }

    /// Waits until all lines that were taken before are in finished files.
    func handOver(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = accepted
        isUrgent = true
        isHandingOver = true
        monitor.wakeAll()
        try wait(timeout) { written >= wanted && !isHandingOver || hasEnded }
    }

    /// Number of files that the agent has not removed; nil if the directory cannot be listed.
    func unreadFiles() -> Int? { names.unread() }

    /// Waits until `isDone`, or throws.
    private func wait(_ timeout: Duration, until isDone: () -> Bool) throws(AnalyticsError) {
        guard !wait(until: steadyNanoseconds() + timeout.wholeNanoseconds, isDone) else { return }
        throw failure ?? AnalyticsError(.timedOut, "\(accepted - written) events still wait to be written")
    }

    /// Waits until `isDone`; returns false if the deadline comes first. The monitor must be held.
    private func wait(until deadline: Int64, _ isDone: () -> Bool) -> Bool {
        while !isDone() {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else { return false }
            monitor.wait(nanoseconds: left)
        }
        return true
    }

    /// Stands for an interval that only a dispatch, a flush or the end of the client ends: ten years, which
    /// no clock reaches.
    static let untilAsked: Int64 = 315_360_000_000_000_000

    /// Sets how long lines gather; nil: until a dispatch asks for them, critical events too.
    func setInterval(_ value: Duration?) {
        change { interval = value?.wholeNanoseconds ?? SpoolWriter.untilAsked }
    }
    /// Begins or ends keeping lines back.
    func setPaused(_ value: Bool) { change { isPaused = value } }
    /// Sets whether events are accepted; the thread writes it to the disk.
    func setEnabled(_ value: Bool) { change { isEnabled = value } }
    /// Whether lines are kept back.
    func whetherPaused() -> Bool { monitor.sync { isPaused } }
    /// How long lines gather; nil: until a dispatch asks for them.
    func gatheringInterval() -> Duration? {
        let value = monitor.sync { interval }
        return value < SpoolWriter.untilAsked ? .nanoseconds(value) : nil
    }
    /// Whether events are accepted. An earlier process of this name may have set it.
    func whetherEnabled() -> Bool { monitor.sync { isEnabled } }

    /// Writes what waits, and ends the thread.
    ///
    /// - Throws: `timedOut`, or why writing fails; the thread keeps trying.
    func close(timeout: Duration) throws(AnalyticsError) {
        change { isClosing = true }
        monitor.lock()
        defer { monitor.unlock() }
        try wait(timeout) { hasEnded }
    }

    /// Changes fields, and wakes the thread.
    private func change(_ body: () -> Void) {
        monitor.sync {
            body()
            monitor.wakeAll()
        }
    }

    /// The writing thread: waits for work, takes the whole buffer, writes it without holding the monitor, and
    /// notes the result.
    ///
    /// What failed goes back in front of the buffer, so that lines keep their order, and is tried again after
    /// a second.
    private func run() {
        monitor.lock()
        while true {
            waitForWork()
            let lines = pending
            let upTo = accepted
            let isHeld = isHolding
            let wantsEnabled = isEnabled
            let isLast = isClosing
            let mustFinish = isHandingOver
            pending = []
            writing = lines.count
            let wasUrgent = isUrgent
            monitor.unlock()
            let problem = write(lines, isHeld: isHeld, isEnabled: wantsEnabled, mustFinish: mustFinish)
            monitor.lock()
            failure = problem
            writing = 0
            if problem == nil {
                written = upTo
                keptEnabled = wantsEnabled
                if !isHeld || isPaused {
                    oldest = pending.isEmpty ? nil : steadyNanoseconds()
                }
                // A line that became urgent during the write was not in it: leave the flags for the next
                // round.
                if wasUrgent, pending.isEmpty {
                    isUrgent = false
                }
                if mustFinish, pending.isEmpty {
                    isHandingOver = false
                }
            } else {
                pending = lines + pending
            }
            monitor.wakeAll()
            if isLast, problem == nil, pending.isEmpty { break }
            // A disk that is full may have room in a second.
            if problem != nil {
                monitor.wait(nanoseconds: 1_000_000_000)
            }
        }
        monitor.unlock()
        // A pause ends with its client. If releasing fails here, the next client of this name finds what was
        // kept back.
        try? files.hold(false)
        files.finish()
        change { hasEnded = true }
    }

    /// How long lines still have to gather, in nanoseconds; nil if they need not.
    private var timeToGather: Int64? {
        guard interval > 0, !isUrgent, !isHandingOver, !isClosing, let oldest else { return nil }
        let left = oldest + interval - steadyNanoseconds()
        return left > 0 ? left : nil
    }

    /// Whether what is written now is kept from the agent.
    private var isHolding: Bool { isPaused || timeToGather != nil }

    /// Returns when there is something to do: lines, the beginning or end of keeping them back, a change of
    /// `isEnabled`, a request, the end.
    ///
    /// Each request has its own flag: a dispatch that is asked for while an urgent event is being written
    /// must not end with that urgency.
    private func waitForWork() {
        while !isClosing, !isUrgent, !isHandingOver, pending.isEmpty, isEnabled == keptEnabled,
            isHolding == files.isHolding
        {
            if isStateWanted {
                // The monitor was released meanwhile, so check all conditions again.
                readState()
            } else if !isPaused, let left = timeToGather {
                monitor.wait(nanoseconds: left)
            } else {
                monitor.wait()
            }
        }
    }

    /// Reads what the agent accepts, without holding the monitor during the read.
    private func readState() {
        monitor.unlock()
        let found = SpoolState.read(directory: settings.directory)
        monitor.lock()
        state = found
        stateReadAt = steadyNanoseconds()
        isStateWanted = false
        monitor.wakeAll()
    }

    /// One write. In this order: the name under which lines are written must be right before they are
    /// written, and a file is finished after its last line.
    private func write(_ lines: [UInt8], isHeld: Bool, isEnabled: Bool, mustFinish: Bool) -> AnalyticsError? {
        do throws(AnalyticsError) {
            try files.keep(isEnabled: isEnabled)
            try files.hold(isHeld)
            if !lines.isEmpty {
                try files.append(lines)
            }
            if mustFinish {
                files.finish()
            }
            return nil
        } catch {
            return error
        }
    }
}

extension Duration {
    /// The duration in nanoseconds, limited to 146 years, so that adding it to a clock cannot overflow.
    var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return min(max(seconds, -4_611_686_018), 4_611_686_018) * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
