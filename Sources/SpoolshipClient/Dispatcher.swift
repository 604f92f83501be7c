internal import Synchronization

/// Moves tracked events to their destinations, on a thread of its own, one dispatch at a time. Requests
/// during a dispatch share the next one, so that an app that asks often does not pile up threads.
final class Dispatcher: Sendable {
    /// Gets the report of a dispatch.
    typealias Completion = @Sendable (DispatchReport) -> Void

    /// The requests; guarded by the mutex.
    private struct State {
        /// Whether a thread dispatches.
        var isRunning = false
        /// Requests that the next dispatch answers.
        var waiting: [Completion] = []
        /// The longest time that one of them allows.
        var timeout = Duration.zero
    }

    /// Writes what was tracked, before it can be sent.
    private let writer: SpoolWriter
    /// The agent's control socket; nil if the settings name none.
    private let socket: AgentSocket?
    /// Guarded state; not held while dispatching.
    private let state = Mutex(State())

    init(writer: SpoolWriter, socket: String?) {
        self.writer = writer
        self.socket = socket.map(AgentSocket.init)
    }

    /// Begins a dispatch, or joins the next one; `completion` is called once, on another thread.
    func dispatch(timeout: Duration, _ completion: @escaping Completion) {
        let mustStart = state.withLock { state in
            state.waiting.append(completion)
            state.timeout = max(state.timeout, timeout)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        // No thread could be started: answer all requests that arrived meanwhile, because nothing else will.
        guard mustStart, !startThread({ [self] in run() }) else { return }
        let abandoned = state.withLock { state in
            defer { state = State() }
            return state.waiting
        }
        let report = DispatchReport(
            result: .error, confirmedBy: .spool, reason: "the system has no thread left for the dispatch")
        for completion in abandoned { completion(report) }
    }

    /// Dispatches until no request waits, and ends the thread.
    private func run() {
        while true {
            let (waiting, timeout) = state.withLock { state in
                defer {
                    // Before the list is emptied, or each request would start a dispatch beside this one.
                    state.isRunning = !state.waiting.isEmpty
                    state.waiting = []
                    state.timeout = .zero
                }
                return (state.waiting, state.timeout)
            }
            guard !waiting.isEmpty else { return }
            let report = perform(until: steadyNanoseconds() + timeout.wholeNanoseconds)
            for completion in waiting { completion(report) }
        }
    }

    /// Finishes the files, waits until the agent has queued them, then asks it to send.
    private func perform(until deadline: Int64) -> DispatchReport {
        guard !writer.whetherPaused() else {
            return DispatchReport(result: .noData, confirmedBy: .spool, reason: "paused")
        }
        do throws(AnalyticsError) {
            try writer.handOver(timeout: .nanoseconds(deadline - steadyNanoseconds()))
        } catch {
            return DispatchReport(result: .error, confirmedBy: .spool, reason: error.message)
        }
        let given = writer.unreadFiles()
        var left = given
        while let count = left, count > 0 {
            guard steadyNanoseconds() < deadline else {
                return DispatchReport(
                    result: .error, confirmedBy: .spool,
                    reason:
                        "files of this client that the agent has not read in time: \(count); does it run?")
            }
            sleepMilliseconds(10)
            left = writer.unreadFiles()
        }
        if let socket, let report = send(socket, until: deadline) { return report }
        guard let given else { return DispatchReport(result: .good, confirmedBy: .spool, reason: "") }
        return given > 0
            ? DispatchReport(result: .good, confirmedBy: .queue, reason: "")
            : DispatchReport(result: .noData, confirmedBy: .queue, reason: "empty")
    }

    /// Asks the agent to send waiting events; nil if this app may not ask, or no agent runs.
    private func send(_ socket: AgentSocket, until deadline: Int64) -> DispatchReport? {
        do throws(AgentSocket.Failure) {
            return DispatchReport(
                answer: try socket.request("POST", "/v1/dispatch", body: #"{"wait":true}"#, until: deadline))
        } catch {
            switch error {
            case .notAvailable: return nil
            case .noAnswer(let reason), .refused(_, let reason):
                return DispatchReport(result: .error, confirmedBy: .queue, reason: reason)
            }
        }
    }
}
