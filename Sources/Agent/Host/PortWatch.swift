internal import Control
internal import EventLoops
internal import Logs
internal import Metrics
internal import Synchronization

/// Asks the agent's own ports whether they answer, and opens again what does not.
///
/// Asked by whoever wants to know: `/readyz`, `status`, the watchdog's round. Nothing wakes up for it. It lives on the main
/// loop.
actor PortWatch: LoopActor {
    /// How long an answer is valid: many callers at a time make one question.
    private static let freshness = Duration.seconds(1)

    nonisolated let loop: EventLoop
    private let time: any TimeSource
    private let log: Log
    private var ports: [any SelfAnswering] = []
    private var lastCheck: BootInstant?
    private var isChecking = false
    private nonisolated let dead = Mutex<[String]>([])
    /// How often each port was opened again.
    nonisolated let reopened = CounterSet(\.listenersReopened)

    init(on loop: EventLoop, time: any TimeSource, log: Log) {
        self.loop = loop
        self.time = time
        self.log = log
    }

    func watch(_ ports: [any SelfAnswering]) { self.ports = ports }

    /// Why the agent is not ready, as of the last check. From any thread.
    nonisolated var obstacles: [String] { dead.withLock { $0 } }

    /// Asks all ports, unless that was done just now.
    func check() async {
        guard !isChecking else { return }
        if let lastCheck, time.bootTime - lastCheck < PortWatch.freshness { return }
        isChecking = true
        var obstacles: [String] = []
        for port in ports where await !isAnswering(port) { obstacles.append("the \(port.name) does not answer") }
        dead.withLock { $0 = obstacles }
        lastCheck = time.bootTime
        isChecking = false
    }

    private func isAnswering(_ port: any SelfAnswering) async -> Bool {
        if await port.isAnswering() { return true }
        reopened.add([port.label])
        do {
            try await port.openAgain()
            log.error("a port did not answer and was opened again", ["port": port.name])
        } catch {
            log.error(
                "a port does not answer and cannot be opened again", ["port": port.name, "reason": error.message])
            return false
        }
        return await port.isAnswering()
    }
}
