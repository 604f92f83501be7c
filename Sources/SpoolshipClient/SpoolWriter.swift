#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Lines on their way to the spool: a bounded buffer, and a thread that empties it into files.
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
    private var oldest: Int64 = 0
    private var interval: Int64 = 0
    private var isUrgent = false
    private var isPaused = false
    private var isClosing = false
    private var hasEnded = false
    private var failure: AnalyticsError?
    /// Bytes that the thread is writing now; they count against the buffer until they are in the spool.
    private var writing = 0
    /// What the agent accepts, when that was read, and whether somebody wants to know it anew.
    private var state: SpoolState
    private var stateReadAt: Int64
    private var isStateWanted = false

    init(_ settings: ClientSettings) throws(AnalyticsError) {
        self.settings = settings
        files = try SpoolFiles(settings)
        state = SpoolState.read(directory: settings.directory)
        stateReadAt = steadyNanoseconds()
        let started = startThread { [self] in run() }
        guard started else { throw AnalyticsError(.notWritable, "the system has no thread left for the writer") }
    }

    // MARK: Callers

    /// Until when a call that begins now may wait.
    func deadline() -> Int64 { steadyNanoseconds() + settings.longestWait.wholeNanoseconds }

    /// What the agent accepts, at most a second old for who calls often.
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
        while isStateWanted, state.accepting != .all, !isClosing {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else { break }
            monitor.wait(nanoseconds: left)
        }
        return state
    }

    /// Takes a line.
    ///
    /// - Throws: when the buffer has no room until `deadline`, or the writer is closed.
    func take(_ line: [UInt8], isUrgent: Bool, until deadline: Int64) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        guard line.count <= settings.bufferSize else {
            throw AnalyticsError(.invalidEvent, "the event is larger than the buffer of \(settings.bufferSize) bytes")
        }
        while pending.count + writing + line.count > settings.bufferSize, !isClosing {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else {
                throw failure
                    ?? AnalyticsError(.bufferFull, "\(pending.count + writing) bytes of events wait to be written")
            }
            monitor.wait(nanoseconds: left)
        }
        guard !isClosing else { throw AnalyticsError(.closed, "the client has been closed") }
        let isFirst = pending.isEmpty
        if isFirst { oldest = steadyNanoseconds() }
        pending += line
        accepted += 1
        if isUrgent { self.isUrgent = true }
        if isFirst || isUrgent || pending.count > settings.bufferSize / 2 { monitor.wakeAll() }
    }

    /// Waits until all that was taken before is written.
    func flush(timeout: Duration) throws(AnalyticsError) {
        monitor.lock()
        defer { monitor.unlock() }
        let wanted = accepted
        let deadline = steadyNanoseconds() + timeout.wholeNanoseconds
        isUrgent = true
        monitor.wakeAll()
        while written < wanted {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else {
                throw failure ?? AnalyticsError(.timedOut, "\(accepted - written) events still wait to be written")
            }
            monitor.wait(nanoseconds: left)
        }
    }

    func setInterval(_ value: Duration) { change { interval = value.wholeNanoseconds } }
    func setPaused(_ value: Bool) { change { isPaused = value } }

    /// Writes what waits, within the time, and ends the thread.
    func close(timeout: Duration) throws(AnalyticsError) {
        change { isClosing = true }
        monitor.lock()
        defer { monitor.unlock() }
        let deadline = steadyNanoseconds() + timeout.wholeNanoseconds
        while !hasEnded {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else {
                throw failure ?? AnalyticsError(.timedOut, "\(accepted - written) events still wait to be written")
            }
            monitor.wait(nanoseconds: left)
        }
    }

    private func change(_ body: () -> Void) {
        monitor.lock()
        body()
        monitor.wakeAll()
        monitor.unlock()
    }

    // MARK: The writing thread

    private func run() {
        monitor.lock()
        while true {
            waitForWork()
            let lines = pending
            let upTo = accepted
            let isHeld = isPaused
            let isLast = isClosing
            pending = []
            writing = lines.count
            isUrgent = false
            monitor.unlock()
            let problem = write(lines, isHeld: isHeld)
            monitor.lock()
            failure = problem
            writing = 0
            if problem == nil {
                written = upTo
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
        files.close()
        monitor.lock()
        hasEnded = true
        monitor.wakeAll()
        monitor.unlock()
    }

    /// Returns when there is something to do: lines that are due, a change between paused and not, the end.
    private func waitForWork() {
        while !isClosing, isPaused == files.isHolding {
            if isStateWanted {
                // Others went on meanwhile: all of it is to be looked at again.
                readState()
                continue
            }
            guard !pending.isEmpty else {
                monitor.wait()
                continue
            }
            let left = oldest + interval - steadyNanoseconds()
            if isUrgent || left <= 0 || pending.count > settings.bufferSize / 2 { return }
            monitor.wait(nanoseconds: left)
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

    private func write(_ lines: [UInt8], isHeld: Bool) -> AnalyticsError? {
        do throws(AnalyticsError) {
            try files.hold(isHeld)
            if !lines.isEmpty { try files.write(lines) }
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
