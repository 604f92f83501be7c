internal import EventLoops
internal import Logs
internal import Synchronization

/// Feeds systemd's watchdog while the agent makes progress, and only then: a process whose pipeline is stuck lives and
/// is worth nothing.
///
/// It lives on the main loop, which proves itself by feeding; the other loops have to answer a knock between two meals. A
/// round wakes each thread once. Three of them in three fifths of five minutes are one wake-up a minute.
final class Watchdog {
    private let interval: Duration
    private let manager: ServiceManager
    private let loop: EventLoop
    private let others: [(loop: EventLoop, answers: Answers)]
    private let log: Log
    private let alarm: HangAlarm
    private let stalls: () -> [String]
    private var round: UInt64 = 0
    private var timer: EventLoop.TimerID?
    private var isWithholding = false

    /// The newest round that a loop has answered.
    private final class Answers: Sendable {
        let round = Atomic<UInt64>(0)
    }

    /// Sleeps until `start`. systemd waits `limit` for a ping (`WatchdogSec=`), the other loops must answer, `alarm` says
    /// what this loop waits for, and `stalls`, asked on the main loop once a round, what of the pipeline is stuck.
    init(
        limit: Duration, manager: ServiceManager, on loop: EventLoop, others: [EventLoop], alarm: HangAlarm, log: Log,
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

    func start() { beginRound() }

    func stop() {
        if let timer { loop.cancel(timer) }
        timer = nil
        alarm.expect(within: nil)
    }

    private func beginRound() {
        round += 1
        alarm.expect(within: interval + .seconds(10))
        for (other, answers) in others {
            other.post { [round] in answers.round.store(round, ordering: .relaxed) }
        }
        timer = loop.after(interval) { self.endRound() }
    }

    private func endRound() {
        let silent = others.filter { $0.answers.round.load(ordering: .relaxed) != round }
        let reasons = silent.map { "loop \($0.loop.name) does not answer" } + stalls()
        if reasons.isEmpty {
            manager.notify("WATCHDOG=1")
            isWithholding = false
        } else if !isWithholding {
            isWithholding = true
            log.error(
                "no progress: systemd will kill and restart the agent unless it continues",
                ["reason": reasons.joined(separator: "; ")])
        }
        beginRound()
    }
}
