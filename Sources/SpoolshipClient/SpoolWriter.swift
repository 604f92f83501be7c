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
    private var lines = LineQueue()
    /// When the agent may see them.
    private var gathering = Gathering()
    /// How far the writer's life is.
    private var life = Life.open
    /// Whether the client accepts events: as it was set, and as it is on the disk.
    private var enabled: (wanted: Bool, kept: Bool)
    /// Why the last write failed; nil after a success.
    private var failure: AnalyticsError?
    /// The agent's state when it was last read.
    private var state: KnownState

    private enum Life {
        /// Lines are accepted.
        case open
        /// No more lines are accepted.
        case closing
        /// The thread has ended.
        case ended
    }

    /// What the agent accepts, as far as it is known.
    private struct KnownState {
        var state: SpoolState
        /// Time at which the agent's state was read.
        var readAt: Int64
        /// Whether a caller waits for it to be read again.
        var isWanted = false
    }

    /// Opens the directory, and starts the thread.
    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        files = try SpoolFiles(settings)
        names = files.names
        enabled = (files.isEnabled, files.isEnabled)
        let found = SpoolState.read(directory: settings.directory)
        state = KnownState(state: found, readAt: steadyNanoseconds())
        let started = startThread { [self] in run() }
        guard started else {
            throw AnalyticsError(.notWritable, "the system has no thread left for the writer")
        }
    }

    /// Time until which a call that begins now may wait.
    func deadline() -> Int64 { steadyNanoseconds() + settings.longestWait.wholeNanoseconds }

    /// What the agent accepts. The state is about a second old at most if calls are frequent.
    ///
    /// The writing thread reads the state's file, because a disk may be slow. While the last state was
    /// "everything", callers do not wait for that; the next call sees a change. Otherwise callers wait for
    /// the new state, because an old one could refuse an event that the agent accepts by now.
    func spoolState(until deadline: Int64) -> SpoolState {
        monitor.lock()
        defer { monitor.unlock() }
        guard steadyNanoseconds() - state.readAt >= 1_000_000_000, life == .open else { return state.state }
        if !state.isWanted {
            state.isWanted = true
            monitor.wakeAll()
        }
        _ = wait(until: deadline) { !state.isWanted || state.state.accepting == .all || life != .open }
        return state.state
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
            lines.bytes + line.count <= settings.bufferSize || life != .open
        }
        guard hasRoom else {
            throw failure
                ?? AnalyticsError(.bufferFull, "\(lines.bytes) bytes of events wait to be written")
        }
        guard life == .open else { throw AnalyticsError(.closed, "the client is closed") }
        let isFirst = lines.isEmpty
        gathering.noteLine(at: steadyNanoseconds(), isUrgent: isUrgent)
        lines.add(line)
        if isFirst || isUrgent {
            monitor.wakeAll()
        }
    }

    /// Waits until all lines that were taken before are written, for the agent to see unless paused, and
    /// `isEnabled` with them.
    func flush(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = lines.accepted
        gathering.demand()
        monitor.wakeAll()
        try wait(timeout) {
            lines.written >= wanted && !gathering.isUrgent && enabled.wanted == enabled.kept
        }
    }

    /// Waits until all lines that were taken before are in finished files.
    func handOver(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = lines.accepted
        gathering.demand(finishing: true)
        monitor.wakeAll()
        try wait(timeout) {
            lines.written >= wanted && !gathering.isHandingOver || life == .ended
        }
    }

    /// Number of files that the agent has not removed; nil if the directory cannot be listed.
    func unreadFiles() -> Int? { names.unread() }

    /// Waits until `isDone`, or throws.
    private func wait(_ timeout: Duration, until isDone: () -> Bool) throws(AnalyticsError) {
        guard !wait(until: steadyNanoseconds() + timeout.wholeNanoseconds, isDone) else { return }
        throw failure
            ?? AnalyticsError(
                .timedOut, "\(lines.accepted - lines.written) events still wait to be written")
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

    /// Sets how long lines gather; nil: until a dispatch asks for them, critical events too.
    func setInterval(_ value: Duration?) {
        change { gathering.interval = value?.wholeNanoseconds ?? Gathering.untilAsked }
    }
    /// Begins or ends keeping lines back.
    func setPaused(_ value: Bool) { change { gathering.isPaused = value } }
    /// Sets whether events are accepted; the thread writes it to the disk.
    func setEnabled(_ value: Bool) { change { enabled.wanted = value } }
    /// Whether lines are kept back.
    func whetherPaused() -> Bool { monitor.sync { gathering.isPaused } }
    /// How long lines gather; nil: until a dispatch asks for them.
    func gatheringInterval() -> Duration? {
        let value = monitor.sync { gathering.interval }
        return value < Gathering.untilAsked ? .nanoseconds(value) : nil
    }
    /// Whether events are accepted. An earlier process of this name may have set it.
    func whetherEnabled() -> Bool { monitor.sync { enabled.wanted } }

    /// Writes what waits, and ends the thread.
    ///
    /// - Throws: `timedOut`, or why writing fails; the thread keeps trying.
    func close(timeout: Duration) throws(AnalyticsError) {
        change {
            if life == .open {
                life = .closing
            }
        }
        monitor.lock()
        defer { monitor.unlock() }
        try wait(timeout) { life == .ended }
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
            let round = lines.begin()
            let isHeld = isHolding
            let wantsEnabled = enabled.wanted
            let isLast = life != .open
            let before = gathering
            monitor.unlock()
            let problem = write(
                round.lines, isHeld: isHeld, isEnabled: wantsEnabled, mustFinish: before.isHandingOver)
            monitor.lock()
            failure = problem
            lines.end(round, isWritten: problem == nil)
            if problem == nil {
                enabled.kept = wantsEnabled
                gathering.noteWritten(
                    since: before, wasHeld: isHeld, isEmpty: lines.isEmpty, at: steadyNanoseconds())
            }
            monitor.wakeAll()
            if isLast, problem == nil, lines.isEmpty { break }
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
        change { life = .ended }
    }

    /// How long lines still have to gather, in nanoseconds; nil if they need not.
    private var timeToGather: Int64? {
        life == .open ? gathering.timeLeft(at: steadyNanoseconds()) : nil
    }

    /// Whether what is written now is kept from the agent.
    private var isHolding: Bool { gathering.isPaused || timeToGather != nil }

    /// Returns when there is something to do: lines, the beginning or end of keeping them back, a change of
    /// `isEnabled`, a request, the end.
    ///
    /// Each request has its own flag: a dispatch that is asked for while an urgent event is being written
    /// must not end with that urgency.
    private func waitForWork() {
        while life == .open, !gathering.isUrgent, !gathering.isHandingOver, lines.isEmpty,
            enabled.wanted == enabled.kept, isHolding == files.isHolding
        {
            if state.isWanted {
                // The monitor was released meanwhile, so check all conditions again.
                readState()
            } else if !gathering.isPaused, let left = timeToGather {
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
        state = KnownState(state: found, readAt: steadyNanoseconds())
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
