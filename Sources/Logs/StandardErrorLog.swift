public import EventLoops
internal import Glibc
internal import Synchronization

/// The agent's log: one line a message on standard error.
///
/// Lines begin with systemd's priority (`<6>`) when standard error is the journal, else with the time and the level.
/// Writing never blocks; a message that repeats is counted instead; level and format can change while it runs.
/// With a loop attached, what had to wait is written as soon as it can be; without one, with the next message. Nothing
/// wakes up an idle process: there is a timer only while a repeated message waits for its count to be written.
///
/// Messages are written as they come: the callers must keep secrets out of them.
/// Isolation: from any thread.
public final class StandardErrorLog: LogSink {
    private struct State: ~Copyable {
        var pipe: LogPipe
        var collapser = MessageCollapser()
        var loop: EventLoop?
        var timerAt: BootInstant?
        var watching = false
        var counts = [Int](repeating: 0, count: LogLevel.allCases.count)
    }

    private let formatter: LogFormatter
    private let time: any TimeSource
    private let levelNumber: Atomic<Int>
    private let isJSON: Atomic<Bool>
    private let state: Mutex<State>

    /// Writes messages of `level` and more severe ones to a descriptor that others may share: it is neither closed nor changed.
    ///
    /// `forJournal` is by default told by `$JOURNAL_STREAM`; `buffer` bytes may wait for a slow reader, default 64 KiB.
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

    /// The least grave level that is written. Can be set at any time; messages above it cost nothing.
    public var level: LogLevel {
        get { LogLevel(rawValue: levelNumber.load(ordering: .relaxed)) ?? .info }
        set { levelNumber.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// How lines look. Can be set at any time.
    public var format: LogFormat {
        get { isJSON.load(ordering: .relaxed) ? .json : .text }
        set { isJSON.store(newValue == .json, ordering: .relaxed) }
    }

    /// How many messages of that level were given to the log, collapsed and suppressed ones included.
    public func messages(of level: LogLevel) -> Int { state.withLock { $0.counts[level.rawValue] } }

    /// How many lines were not written because the reader was too slow or gone.
    public var suppressedLines: Int { state.withLock { $0.pipe.suppressed } }

    /// Lets the loop write what had to wait, and the counts of repeated messages when their time has come.
    public func attach(to loop: EventLoop) {
        state.withLock { $0.loop = loop }
        loop.post { self.act() }
    }

    /// Takes a message; never blocks.
    public func write(_ message: LogMessage) {
        let wake = state.withLock { state -> EventLoop? in
            state.counts[message.level.rawValue] += 1
            for message in state.collapser.take(message, at: time.bootTime) { put(message, &state.pipe) }
            return needsLoop(state) ? state.loop : nil
        }
        wake?.post { self.act() }
    }

    /// Writes all that is held back, for the end of the program; waits at most a second for the reader.
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

    private func needsLoop(_ state: borrowing State) -> Bool {
        guard state.loop != nil else { return false }
        if state.pipe.isWaiting && !state.watching { return true }
        guard let due = state.collapser.nextDue else { return false }
        return state.timerAt.map { due < $0 } ?? true
    }

    /// Writes what is due, then watches and waits for what is not.
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
                    // What cannot be watched (a file) does not make writers wait; else the next message tries again.
                    state.watching = (try? loop.watch(state.pipe.watchable, for: .writable) { _ in self.act() }) != nil
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

    private func put(_ message: LogMessage, _ pipe: inout LogPipe) {
        pipe.write(formatter.line(message, at: time.wallTime, as: format), told: missing)
    }

    private func missing(_ lines: Int) -> [UInt8] {
        let message = LogMessage(level: .warning, text: "log lines suppressed", fields: [("lines", "\(lines)")])
        return formatter.line(message, at: time.wallTime, as: format)
    }

    /// Whether the descriptor is the stream that systemd connected to the journal. Source: systemd.exec(5).
    private static func isJournal(_ descriptor: Int32) -> Bool {
        guard let variable = getenv("JOURNAL_STREAM") else { return false }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        return String(cString: variable) == "\(status.st_dev):\(status.st_ino)"
    }
}
