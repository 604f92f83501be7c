internal import Control
internal import EventLoops
internal import Journal
internal import Model
internal import Queue
internal import Spool

/// The state of the agent at one moment, from published figures. It has no event content and no secrets,
/// except that `lastFailure` and `unnamedRejections` may quote what a receiver answered.
struct StatusReport: Sendable {
    /// A destination of the configuration, or a removed one with something left (an orphan).
    struct Destination: Sendable {
        var name: String
        var state: DestinationStateName
        /// The address without user, password, path and query: `https://logs.example`.
        var address: String?
        /// Since when the destination is in its state.
        var since: Timestamp?
        /// When the agent will try again without a command.
        var nextAttempt: Timestamp?
        /// When the receiver last acknowledged a batch; nil if that is unknown.
        var lastAcknowledged: Timestamp?
        /// The failure that explains the state: that of a hold, or of a wait that the receiver asked for;
        /// otherwise the last one, even if something was acknowledged later. Its words may quote an event, so
        /// only clients of the control socket get them, not the log or the page.
        var lastFailure: (failure: Failure, at: Timestamp)?
        /// The destination's dispatch interval as in the configuration, if it differs from
        /// `StatusReport.interval`.
        var interval: String?
        /// Tokens of the pauses of this destination alone.
        var pauseTokens: [String] = []
        /// Batches that are being sent.
        var inFlight = 0
        /// Batches that wait for their next attempt.
        var retryWaiting = 0
        /// Events that are set aside, by app; the empty name stands for events whose app was not looked up.
        var setAside: [String: Int] = [:]
        /// The last failure of requests with an app's events, by app, while requests of other apps succeed.
        var failingApps: [String: String] = [:]
        /// Events that the receiver rejected without naming them, since the start, and the receiver's
        /// message.
        var unnamedRejections: (events: Int, words: String?)?
        /// The lanes, critical first.
        var lanes: [QueueSnapshot.LaneState] = []

        /// The ledger of a priority; zeros without a lane.
        func ledger(_ priority: Priority) -> Ledger {
            lanes.first { $0.priority == priority }?.ledger ?? Ledger()
        }

        /// Events that wait.
        var queued: Int { lanes.map(\.ledger.queued).reduce(0, +) }

        /// When the oldest waiting event was accepted; nil if nothing waits.
        var oldest: Timestamp? { lanes.compactMap(\.oldestQueuedAt).min() }

        /// The last failure, if nothing was acknowledged since.
        var standingFailure: (failure: Failure, at: Timestamp)? {
            lastFailure.flatMap { $0.at > lastAcknowledged ?? Timestamp(nanoseconds: .min) ? $0 : nil }
        }
    }

    /// The spool, and the files and journals that are read in place.
    struct Spool: Sendable {
        var directory = ""
        /// Bytes that are not in the queue yet.
        var lagBytes = 0
        /// How long the oldest of these bytes have waited, in seconds.
        var lagSeconds = 0
        /// False after a start until each directory was listed once: more may wait than `lagBytes`.
        var isListed = true
        /// Files in the spool, without those that are read in place.
        var files = 0
        /// Why reading waits; nil if it does not wait.
        var waits: String?
        /// Files and directories that wait for a second try after a failed system call, by reason.
        var secondTries: [String: Int] = [:]
        /// Some paths of the second tries.
        var secondTryPaths: [String] = []
        /// Lines whose end has been missing for longer than a minute.
        var unfinishedLines: [SpoolFigures.UnfinishedLine] = []
        /// Files that are not read because of their names.
        var passedOver = 0
        /// What a person should fix, such as files that cannot be read, with their owners.
        var complaints: [String] = []
        /// The directories that are read in place. Without figures the agent still looks for the directory.
        var places: [(place: ReadPlace, figures: SpoolFigures?)] = []
        /// The journals that are read; a nil directory means this machine's own journal.
        var journals: [(app: String, directory: String?, figures: JournalFigures)] = []
    }

    /// A container.
    struct Container: Sendable {
        var id: String
        /// `opening`, `none`, `default`, `saved`, `network` or `preview`.
        var source: String
        /// The version in force, or `none`.
        var version: String
        /// When the server last confirmed the document in force.
        var confirmed: Timestamp?
        /// The last problem; nil if all is well.
        var problem: String?
        /// When the draft that is in force ends; nil without a draft.
        var previewEnds: Timestamp?
    }

    /// A setting that differs from the configuration (`dispatch.interval`), its value as the configuration
    /// would write it, and its origin (`container GTM-1234`).
    typealias Override = (setting: String, value: String, origin: String)

    var version = ""
    var host = ""
    /// What has changed since the start: the host's name, the time zone.
    var hostNews: [String] = []
    var processID = 0
    /// When the agent started, by the boot clock: a changed time of day does not change the age.
    var started: Timestamp
    /// The moment of the report, to which all ages refer.
    var now: Timestamp
    /// Why the agent is not ready; empty if it is.
    var obstacles: [String] = []
    /// Names of the destinations among the obstacles; a metric counts them apart, because they have alerts of
    /// their own.
    var standingStill: Set<String> = []
    /// False while collection is disabled.
    var isEnabled = true
    /// False if a person has switched the network off.
    var isNetworkOn = true
    /// Tokens of the pauses of all destinations.
    var pauseTokens: [String] = []
    /// The dispatch interval of destinations that have none of their own, as in the configuration: `6s`,
    /// `off`.
    var interval = "6s"
    /// The origin of the interval: `configuration`, `command` or `container GTM-1234`.
    var intervalOrigin = "configuration"
    var logLevel = "info"
    /// Why the last reload failed; nil if it succeeded.
    var reloadProblem: String?
    /// Settings that were edited in the configuration's files and that a reload applies.
    var edits: [String] = []
    /// Settings that were edited and that only a restart applies, reloaded or not.
    var restartEdits: [String] = []
    /// Why a restart would fail; nil if it would succeed.
    var restartProblem: String?
    /// Counts of each app's events since the start.
    var apps: [String: AppCounts] = [:]
    /// The destinations, in the order of the configuration, orphans last.
    var destinations: [Destination] = []
    /// The queue, as it was last published.
    var queue = QueueSnapshot()
    /// Growth of the queue over the last minutes, in bytes a second; nil if unknown.
    var growth: Double?
    var spool = Spool()
    /// The rules of the configuration in their order, with the number of events that each has acted on since
    /// the start.
    var rules: [(name: String, events: Int)] = []
    /// Findings of schemas and of the search for repeats, a line each.
    var checks: [String] = []
    var containers: [Container] = []
    /// Settings that containers or commands have set; all others are as configured.
    var overrides: [Override] = []

    /// True if all ledgers balance; anything else is a defect of the agent.
    var balances: Bool {
        queue.intake.balances && destinations.allSatisfy { $0.lanes.allSatisfy(\.ledger.balances) }
    }

    /// The priorities that are accepted (`all`, `critical` or `nothing`), and why not all. While collection
    /// is disabled, events are read and discarded.
    var accepting: (word: String, reason: String?) {
        guard isEnabled else { return ("nothing", "disabled") }
        return switch queue.accepting {
        case .all: ("all", nil)
        case .critical: ("critical", nil)
        case .nothing(let reason): ("nothing", reason.rawValue)
        }
    }

    /// Up to four of the files that stay in the spool because the quarantine could not hold all of their bad
    /// lines.
    var stayingPaths: [String] { Array(queue.unkept.values.sorted().prefix(4)) }

    /// How long until the queue reaches its cap at the present growth; nil if it does not grow, or would take
    /// longer than 30 days.
    var capReachedIn: Duration? {
        guard let growth, growth > 0, queue.maxSize > queue.storedBytes else { return nil }
        let seconds = Double(queue.maxSize - queue.storedBytes) / growth
        // Beyond 30 days the estimate means nothing.
        return seconds < 30 * 86_400 ? .seconds(seconds) : nil
    }

    /// The apps, the one with most events first.
    var busiestApps: [(name: String, counts: AppCounts)] {
        apps.sorted { ($1.value.events, $0.key) < ($0.value.events, $1.key) }.map { ($0.key, $0.value) }
    }

    /// When events are sent without a command: `every 6s; archive every 1m`.
    var dispatchText: String {
        func text(_ interval: String) -> String {
            interval == "off" ? "only by command" : "every \(interval)"
        }
        let origin = intervalOrigin == "configuration" ? "" : " (set by \(intervalOrigin))"
        let own = destinations.compactMap { destination in
            destination.interval.map { "; \(destination.name) \(text($0))" }
        }
        return text(interval) + origin + own.joined()
    }

    /// How long a destination may acknowledge nothing before it counts as standing still: ten minutes, so
    /// that a short failure of a receiver does not make the agent unready.
    static let patience: Duration = .seconds(600)

    /// How long a destination may acknowledge nothing before it is blamed for a full queue.
    private static let blocking: Duration = .seconds(30)

    /// The destinations that fill the queue, so that nothing is accepted for the others either, each with a
    /// reason for readiness.
    ///
    /// A full queue waits for a destination that acknowledges nothing (`when_behind = "wait"`). The other
    /// destinations then have nothing to do, and their own states look good.
    var blockers: [(name: String, reason: String)] {
        let accepted: String
        switch queue.accepting {
        case .nothing(.full): accepted = "no events are accepted"
        case .critical: accepted = "only critical events are accepted"
        case .all, .nothing: return []
        }
        // Not before the start: a destination is not to blame for the time when the agent was down.
        let still = destinations.filter {
            $0.queued > 0 && now - max($0.lastAcknowledged ?? started, started) > StatusReport.blocking
        }
        // If no destination acknowledges anything, none of them blocks the others: `standstills` reports
        // them.
        guard still.count < destinations.count else { return [] }
        return still.map { destination in
            let quiet = HumanText.duration(now - max(destination.lastAcknowledged ?? started, started))
            let events = HumanText.plural(destination.queued, "event")
            let reason =
                "the queue is full, \(accepted) for any destination: \(destination.name) acknowledged "
                + "nothing for \(quiet) and has \(events) in it; fix it, or set its when_behind = "
                + "\"skip\" and reload"
            return (destination.name, reason)
        }
    }

    /// The destinations that make no progress although they should, each with a reason for readiness.
    ///
    /// What a person ordered (paused, network off, disabled) is not a standstill. A destination that is held
    /// stands still at once; any other if something waits and nothing was acknowledged for `patience` and an
    /// interval.
    ///
    /// - Parameter interval: the dispatch interval of a destination, by its name; nil if periodic dispatch is
    ///   off: then only destinations that fail are judged.
    func standstills(interval: (String) -> Duration?) -> [(name: String, reason: String)] {
        destinations.compactMap { destination in
            guard destination.queued > 0 else { return nil }
            let interval = interval(destination.name)
            switch destination.state {
            case .disabled, .networkOff, .paused, .stopping, .orphaned: return nil
            case .held:
                let message = destination.lastFailure?.failure.message
                return (destination.name, "\(destination.name) is held: \(message ?? "see the log")")
            // Without periodic dispatch events wait for a command, which is not a fault.
            case .active where interval == nil: return nil
            case .active, .retryAfter, .offline, .breakerOpen, .waitingForRetry: break
            }
            // The time counts from the later of the last acknowledgement and the arrival of the oldest event:
            // a destination without events acknowledges nothing either.
            let quietSince = max(destination.lastAcknowledged ?? started, started)
            let waitsSince = destination.oldest ?? now
            guard now - max(quietSince, waitsSince) > StatusReport.patience + (interval ?? .zero) else {
                return nil
            }
            let events = HumanText.plural(destination.queued, "event")
            let reason =
                "\(destination.name): nothing was acknowledged for \(HumanText.duration(now - quietSince)) "
                + "although \(events) wait\(destination.queued == 1 ? "s" : "")"
            let cause =
                destination.state == .offline
                ? "there is no route to it" : destination.standingFailure?.failure.message
            return (destination.name, reason + (cause.map { ": \($0)" } ?? ""))
        }
    }
}
