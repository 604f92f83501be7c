internal import EventLoops

/// The commits that are under way, and what the sink has said.
struct SpoolCommits {
    var underWay = 0
    /// The pass that the sink has not closed its part of; nothing is taken meanwhile.
    var closing: ClosedPass?
    /// Whether the sink wants one before it takes more.
    var isWanted = false
    /// Whether the file that was read last waits for the sink's word.
    var isParked = false
    var last = BootInstant(nanoseconds: 0)
}

/// What is to be done later: one timer, for the soonest of it.
struct SpoolErrands {
    var agenda = Heap<BootInstant, SpoolReader.Errand>()
    var alarm: (deadline: BootInstant, timer: EventLoop.TimerID)?
}

struct SpoolReaderLife {
    enum Phase { case idle, running, stopping, stopped }

    var phase = Phase.idle
    /// Whether the loop comes back to the reader as soon as it can.
    var isPumpPosted = false
    /// Commits and removals that are under way.
    var tasks = 0
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
}
