public import EventLoops
internal import Glibc
internal import Synchronization

/// The agent's log: a line for each message on standard error.
///
/// Lines begin with systemd's priority (`<6>`) if standard error is the journal, otherwise with time and
/// level. Writing never blocks; repeated messages are counted; level and format may change at any time.
/// With a loop attached, lines that had to wait are written as soon as possible; without one, with the next
/// message. An idle process is not woken: a timer runs only while a count waits to be written.
///
/// Callers must keep secrets and event content out of messages. Thread-safe.
public final class StandardErrorLog: LogSink {
    /// State behind the lock.
    private struct State: ~Copyable {
        var pipe: LogPipe
        var collapser = MessageCollapser()
        var loop: EventLoop?
        /// When the loop's timer fires; nil without a timer.
        var timerAt: BootInstant?
        /// Whether the loop watches the descriptor for room.
        var watching = false
        /// Messages given to the log, by level.
        var counts = [Int](repeating: 0, count: LogLevel.allCases.count)
    }

    private let formatter: LogFormatter
    private let time: any TimeSource
    /// Raw value of the level, readable without the lock: most messages are below the level.
    private let levelNumber: Atomic<Int>
    /// Whether the format is JSON.
    private let isJSON: Atomic<Bool>
    private let state: Mutex<State>

    /// Writes messages of `level` and more severe ones.
    ///
    /// - Parameters:
    ///   - descriptor: may be shared with others; it is neither closed nor changed.
    ///   - forJournal: whether lines begin with a priority for systemd; by default according to
    ///     `$JOURNAL_STREAM`.
    ///   - buffer: bytes that may wait for a slow reader; default 64 KiB.
    public init(
        level: LogLevel = .info, format: LogFormat = .text, descriptor: Int32 = 2, forJournal: Bool? = nil,
        buffer: Int = 65_536, time: any TimeSource = SystemTime()
    ) {
        formatter = LogFormatter(forJournal: forJournal ?? StandardErrorLog.isJournal(descriptor))
        self.time = time
        levelNumber = Atomic(level.rawValue)
        isJSON = Atomic(format == .json)
        state = Mutex(State(pipe: LogPipe(descriptor: descriptor, capacity: buffer)))
    }

    /// The least severe level that is written. May be set at any time.
    public var level: LogLevel {
        get { LogLevel(rawValue: levelNumber.load(ordering: .relaxed)) ?? .info }
        set { levelNumber.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// The form of lines. May be set at any time.
    public var format: LogFormat {
        get { isJSON.load(ordering: .relaxed) ? .json : .text }
        set { isJSON.store(newValue == .json, ordering: .relaxed) }
    }

    /// Number of messages of a level that were given to the log, counted and suppressed ones included.
    public func messages(of level: LogLevel) -> Int { state.withLock { $0.counts[level.rawValue] } }

    /// Number of lines that were not written because the reader was too slow or gone.
    public var suppressedLines: Int { state.withLock { $0.pipe.suppressed } }

    /// Lets the loop write what had to wait, and the counts of repeated messages when they are due.
    public func attach(to loop: EventLoop) {
        state.withLock { $0.loop = loop }
        loop.post { self.act() }
    }

    /// Counts a message and writes it, or lets it be counted as a repeat. Never blocks. Asks the loop to
    /// act only if it has to: most messages are written at once.
    public func write(_ message: LogMessage) {
        let wake = state.withLock { state -> EventLoop? in
            state.counts[message.level.rawValue] += 1
            for message in state.collapser.add(message, at: time.bootTime) { put(message, &state.pipe) }
            return needsLoop(state) ? state.loop : nil
        }
        wake?.post { self.act() }
    }

    /// Writes everything that is held back, at the end of the program; waits at most a second for the
    /// reader (20 times 50 ms).
    public func finish() {
        state.withLock { state in
            for message in state.collapser.flush() { put(message, &state.pipe) }
        }
        for _ in 0..<20 where state.withLock({ $0.pipe.isWaiting }) {
            var poll = pollfd(fd: state.withLock { $0.pipe.watchable }, events: Int16(POLLOUT), revents: 0)
            guard Glibc.poll(&poll, 1, 50) >= 0 else { continue }
            state.withLock { $0.pipe.flush(told: missing) }
        }
    }

    /// Whether the loop has something to do that it does not know of.
    private func needsLoop(_ state: borrowing State) -> Bool {
        guard state.loop != nil else { return false }
        if state.pipe.isWaiting && !state.watching { return true }
        guard let due = state.collapser.nextDue else { return false }
        return state.timerAt.map { due < $0 } ?? true
    }

    /// On the loop: writes what is due, and then watches and waits for the rest.
    private func act() {
        state.withLock { state in
            guard let loop = state.loop else { return }
            for message in state.collapser.due(at: time.bootTime) { put(message, &state.pipe) }
            state.pipe.flush(told: missing)
            if state.pipe.isWaiting != state.watching {
                if state.watching {
                    loop.forget(state.pipe.watchable)
                    state.watching = false
                } else {
                    // A file cannot be watched, and does not make writers wait. In other cases the next
                    // message tries again.
                    state.watching =
                        (try? loop.watch(state.pipe.watchable, for: .writable) { _ in self.act() }) != nil
                }
            }
            if let due = state.collapser.nextDue, state.timerAt.map({ due < $0 }) ?? true {
                state.timerAt = due
                loop.at(due) {
                    self.state.withLock { $0.timerAt = nil }
                    self.act()
                }
            }
        }
    }

    /// Formats and writes a message.
    private func put(_ message: LogMessage, _ pipe: inout LogPipe) {
        pipe.write(formatter.line(message, at: time.wallTime, as: format), told: missing)
    }

    /// The line that reports suppressed lines.
    private func missing(_ lines: Int) -> [UInt8] {
        let message = LogMessage(
            level: .warning, text: "log lines suppressed", fields: [("lines", "\(lines)")])
        return formatter.line(message, at: time.wallTime, as: format)
    }

    /// Whether the descriptor is the stream that systemd has connected to the journal. Source:
    /// systemd.exec(5), `$JOURNAL_STREAM`.
    private static func isJournal(_ descriptor: Int32) -> Bool {
        guard let variable = getenv("JOURNAL_STREAM") else { return false }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        return String(cString: variable) == "\(status.st_dev):\(status.st_ino)"
    }
}
