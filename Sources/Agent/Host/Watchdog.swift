internal import EventLoops
internal import Logs
internal import Synchronization

/// Feeds systemd's watchdog while the agent makes progress, and only then: a process whose pipeline is stuck
/// is alive and useless.
///
/// It runs on the main loop, so that feeding proves that this loop runs. The other loops must answer a
/// message in each round. A round wakes each thread once: with three threads and a round of three minutes,
/// that is one wake-up a minute.
final class Watchdog {
    /// Length of a round: three fifths of the limit, so that a round which is late by two fifths still feeds
    /// in time.
    private let interval: Duration
    private let manager: ServiceManager
    private let loop: EventLoop
    /// The other loops, each with the newest round that it has answered.
    private let others: [(loop: EventLoop, answers: Answers)]
    private let log: Log
    /// Logs the file that the main loop waits for if a round does not end.
    private let alarm: HangAlarm
    /// What of the pipeline is stuck; called on the main loop once a round.
    private let stalls: () -> [String]
    /// Number of the current round. A late answer carries an older number and does not count.
    private var round: UInt64 = 0
    /// The end of the round; nil before the start and after the stop.
    private var timer: EventLoop.TimerID?
    /// True if the last round did not feed; the error is logged once, not every round.
    private var isWithholding = false

    /// The newest round that a loop has answered.
    private final class Answers: Sendable {
        let round = Atomic<UInt64>(0)
    }

    /// - Parameters:
    ///   - limit: how long systemd waits for a ping (`WatchdogSec=`).
    ///   - others: the loops that must answer, besides `loop`, the main loop.
    ///   - alarm: names the file that the main loop waits for.
    ///   - stalls: what of the pipeline is stuck; called on the main loop once a round.
    init(
        limit: Duration, manager: ServiceManager, on loop: EventLoop, others: [EventLoop], alarm: HangAlarm,
        log: Log,
        stalls: @escaping () -> [String]
    ) {
        interval = limit * 3 / 5
        self.manager = manager
        self.loop = loop
        self.others = others.map { ($0, Answers()) }
        self.alarm = alarm
        self.log = log
        self.stalls = stalls
    }

    /// Begins the first round; before it nothing is fed.
    func start() { beginRound() }

    /// Ends the rounds and the alarm: the agent stops.
    func stop() {
        if let timer {
            loop.cancel(timer)
        }
        timer = nil
        alarm.expect(within: nil)
    }

    /// Sends a message to each other loop and sets the timer for the end of the round.
    private func beginRound() {
        round += 1
        // Ten seconds more than the round, so that a loop that is only busy raises no alarm.
        alarm.expect(within: interval + .seconds(10))
        for (other, answers) in others {
            other.post { [round] in answers.round.store(round, ordering: .relaxed) }
        }
        timer = loop.after(interval) { self.endRound() }
    }

    /// Feeds systemd if all loops have answered and nothing is stuck, and begins the next round. A later
    /// round may feed again: systemd restarts the agent only if none does within the limit.
    private func endRound() {
        let silent = others.filter { $0.answers.round.load(ordering: .relaxed) != round }
        let reasons = silent.map { "loop \($0.loop.name) does not answer" } + stalls()
        if reasons.isEmpty {
            manager.notify("WATCHDOG=1")
            isWithholding = false
        } else if !isWithholding {
            isWithholding = true
            log.error(
                "watchdog: no progress, systemd restarts the agent unless it continues",
                ["reason": reasons.joined(separator: "; ")])
        }
        beginRound()
    }
}
