internal import Control
internal import EventLoops
internal import Logs
internal import Metrics
internal import Synchronization

/// Connects to the agent's own ports to see whether they answer, and reopens a port that does not.
///
/// A check runs only on demand: for `/readyz`, for `status` and in the watchdog's round. It has no timer, so
/// that an idle agent does not wake up. It lives on the main loop.
actor PortWatch: LoopActor {
    /// How long a result is valid, so that many callers at once cause one check.
    private static let freshness = Duration.seconds(1)

    nonisolated let loop: EventLoop
    private let time: any TimeSource
    private let log: Log
    /// The ports to check; set once they are open.
    private var ports: [any SelfAnswering] = []
    /// When the last check ended; nil before the first.
    private var lastCheck: BootInstant?
    /// True while a check waits for an answer; a second check beside it would reopen the same port twice.
    private var isChecking = false
    /// A message for each port that did not answer in the last check and could not be reopened.
    private nonisolated let dead = Mutex<[String]>([])
    /// How often each port was reopened.
    nonisolated let reopened = CounterSet(\.listenersReopened)

    init(on loop: EventLoop, time: any TimeSource, log: Log) {
        self.loop = loop
        self.time = time
        self.log = log
    }

    /// Sets the ports to check.
    func watch(_ ports: [any SelfAnswering]) { self.ports = ports }

    /// Why the agent is not ready, as of the last check. From any thread.
    nonisolated var obstacles: [String] { dead.withLock { $0 } }

    /// Checks all ports, unless a check is running or ended less than a second ago.
    func check() async {
        guard !isChecking else { return }
        if let lastCheck, time.bootTime - lastCheck < PortWatch.freshness { return }
        isChecking = true
        var obstacles: [String] = []
        for port in ports where await !isAnswering(port) {
            obstacles.append("the \(port.name) does not answer")
        }
        dead.withLock { $0 = obstacles }
        lastCheck = time.bootTime
        isChecking = false
    }

    /// True if the port answers, if necessary after it was reopened.
    private func isAnswering(_ port: any SelfAnswering) async -> Bool {
        if await port.isAnswering() { return true }
        reopened.add([port.label])
        do {
            try await port.openAgain()
            log.error("a port did not answer and was opened again", ["port": port.name])
        } catch {
            log.error(
                "a port does not answer and cannot be opened again",
                ["port": port.name, "reason": error.message])
            return false
        }
        return await port.isAnswering()
    }
}
