/// How long lines gather before the agent may see them, and what ends that: a pause, an interval, an urgent
/// event, a dispatch. It has no clock of its own; times are in nanoseconds.
struct Gathering {
    /// How long lines gather; 0 does not gather.
    var interval: Int64 = 0
    /// Whether a pause keeps lines back.
    var isPaused = false
    /// Whether the waiting lines must be visible to the agent at once, whatever the interval.
    private(set) var isUrgent = false
    /// Whether the append file must be finished: the agent removes a finished file when it has read it,
    /// which tells `dispatch` that its events are queued.
    private(set) var isHandingOver = false
    /// Time at which the oldest line was added that the agent does not see yet; nil if it sees all. The
    /// interval begins at this time.
    private var oldest: Int64?

    /// Stands for an interval that only a dispatch, a flush or the end of the client ends: ten years, which
    /// no clock reaches.
    static let untilAsked: Int64 = 315_360_000_000_000_000

    /// Notes that a line was added.
    ///
    /// - Parameters:
    ///   - now: the time; computed only if this line starts an interval.
    ///   - isUrgent: whether the event is critical. It ends the interval, unless only a dispatch or a flush
    ///     does.
    mutating func noteLine(at now: @autoclosure () -> Int64, isUrgent: Bool) {
        if oldest == nil {
            oldest = now()
        }
        if isUrgent, interval < Gathering.untilAsked {
            self.isUrgent = true
        }
    }

    /// Asks for all lines to be written for the agent to see, and for their file to be finished.
    mutating func demand(finishing: Bool = false) {
        isUrgent = true
        isHandingOver = isHandingOver || finishing
    }

    /// How long lines still have to gather; nil if they need not.
    func timeLeft(at now: @autoclosure () -> Int64) -> Int64? {
        guard interval > 0, !isUrgent, !isHandingOver, let oldest else { return nil }
        let left = oldest + interval - now()
        return left > 0 ? left : nil
    }

    /// Notes that lines were written.
    ///
    /// - Parameters:
    ///   - before: this value as it was when the write began.
    ///   - wasHeld: whether the lines were written where the agent does not see them yet.
    ///   - isEmpty: whether no line was added during the write. A demand or an urgent line of that time was
    ///     not part of the write, so it stays in force.
    mutating func noteWritten(
        since before: Gathering, wasHeld: Bool, isEmpty: Bool, at now: @autoclosure () -> Int64
    ) {
        if !wasHeld || isPaused {
            oldest = isEmpty ? nil : now()
        }
        guard isEmpty else { return }
        if before.isUrgent {
            isUrgent = false
        }
        if before.isHandingOver {
            isHandingOver = false
        }
    }
}

/// Lines between the callers and the writing thread.
struct LineQueue {
    /// Lines that one write takes.
    struct Round {
        /// The lines.
        let lines: [UInt8]
        /// Number of lines that were taken so far.
        let upTo: Int
    }

    /// Lines that wait to be written.
    private var pending: [UInt8] = []
    /// Bytes that are being written. They count against the buffer until they are in the spool.
    private var writing = 0
    /// Number of lines that were taken.
    private(set) var accepted = 0
    /// Number of lines that are in the spool. `flush` waits until it reaches `accepted`.
    private(set) var written = 0

    /// Whether no line waits for the next write.
    var isEmpty: Bool { pending.isEmpty }

    /// Bytes that are not in the spool.
    var bytes: Int { pending.count + writing }

    /// Takes a line.
    mutating func add(_ line: [UInt8]) {
        pending += line
        accepted += 1
    }

    /// Takes all lines for a write.
    mutating func begin() -> Round {
        let round = Round(lines: pending, upTo: accepted)
        pending = []
        writing = round.lines.count
        return round
    }

    /// Ends a write. What failed goes back in front, so that lines keep their order.
    mutating func end(_ round: Round, isWritten: Bool) {
        writing = 0
        if isWritten {
            written = round.upTo
        } else {
            pending = round.lines + pending
        }
    }
}
