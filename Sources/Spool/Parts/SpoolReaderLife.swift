internal import EventLoops

/// The phase of the reader's life, and what must end before the reader may stop.
struct SpoolReaderLife {
    /// The phases, in this order; `stopping` ends what was taken with a last commit.
    enum Phase { case idle, running, stopping, stopped }

    var phase = Phase.idle
    /// Whether `pump` is posted to the loop; otherwise each `wake` would post another call.
    var isPumpPosted = false
    /// The reader's only timer, set to the agenda's next errand.
    var alarm: EventLoop.TimerID?
    /// Commits, with the removals that follow them, that are under way.
    var tasks = 0
    /// Callers of `stop`, resumed once the reader has stopped.
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
}
