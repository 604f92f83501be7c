internal import Control
internal import EventLoops
internal import Journal
internal import Model
internal import Queue
internal import Spool

/// The state of the agent at one moment, from published figures; nothing in it is event content or secret.
struct StatusReport: Sendable {
    struct Destination: Sendable {
        var name: String
        var state: DestinationStateName
        /// Where it is, without user, password, path and query: `https://logs.example`.
        var address: String?
        var since: Timestamp?
        /// When something is next tried by itself.
        var nextAttempt: Timestamp?
        var lastAcknowledged: Timestamp?
        /// The last failure, whatever came after it. Its words may quote an event, so they are for those who may use the control
        /// socket, and not for the log or the page.
        var lastFailure: (failure: Failure, at: Timestamp)?
        /// The interval in force for it, as in the configuration, where it is another one than `StatusReport.interval`.
        var interval: String?
        var pauseTokens: [String] = []
        /// Batches that are being sent.
        var inFlight = 0
        var retryWaiting = 0
        /// Events that are set aside, by app; the empty name: nobody looked whose they are.
        var setAside: [String: Int] = [:]
        /// Why requests with events of these apps alone fail.
        var failingApps: [String: String] = [:]
        /// Events that it said to have rejected without saying which, since the start, and its words.
        var unnamedRejections: (events: Int, words: String?)?
        /// Its lanes, critical first.
        var lanes: [QueueSnapshot.LaneState] = []

        /// What happened to its events of a priority; zeros for an unknown one.
        func ledger(_ priority: Priority) -> Ledger { lanes.first { $0.priority == priority }?.ledger ?? Ledger() }

        var queued: Int { lanes.map(\.ledger.queued).reduce(0, +) }

        var oldest: Timestamp? { lanes.compactMap(\.oldestQueuedAt).min() }

        /// The last failure, if nothing was acknowledged since.
        var standingFailure: (failure: Failure, at: Timestamp)? {
            lastFailure.flatMap { $0.at > lastAcknowledged ?? Timestamp(nanoseconds: .min) ? $0 : nil }
        }
    }

    struct Spool: Sendable {
        var directory = ""
        /// Bytes that are not in the queue yet.
        var lagBytes = 0
        /// How long the oldest of them have waited, in seconds.
        var lagSeconds = 0
        var files = 0
        /// Why reading waits; nil when it does not.
        var waits: String?
        /// Files and directories that wait for a second try after a failed system call, by reason.
        var secondTries: [String: Int] = [:]
        /// Files that are not read because of their names.
        var passedOver = 0
        /// What a person should fix: whose files cannot be read and why.
        var complaints: [String] = []
        /// Where files are read that are elsewhere; no figures: it is looked for until it can be read.
        var places: [(place: ReadPlace, figures: SpoolFigures?)] = []
        /// The journals that are read; no directory: this machine's own.
        var journals: [(app: String, directory: String?, figures: JournalFigures)] = []
    }

    struct Container: Sendable {
        var id: String
        /// `opening`, `none`, `default`, `saved`, `network` or `preview`.
        var source: String
        var version: String
        var confirmed: Timestamp?
        var problem: String?
        /// When the draft that rules now ends; nil without one.
        var previewEnds: Timestamp?
    }

    /// A setting that does not come from the configuration (`dispatch.interval`), its value as the configuration would write it, and
    /// where it comes from (`container GTM-1234`).
    typealias Override = (setting: String, value: String, origin: String)

    var version = ""
    var host = ""
    var processID = 0
    var started: Timestamp
    var now: Timestamp
    /// Why the agent is not ready; empty if it is.
    var obstacles: [String] = []
    /// How many of these are destinations, which have alerts of their own.
    var standstills = 0
    var isEnabled = true
    /// Whether connections may be made.
    var isNetworkOn = true
    var pauseTokens: [String] = []
    /// The dispatch interval where a destination has none of its own, as in the configuration: `6s`, `off`.
    var interval = "6s"
    /// Where it comes from: `configuration`, `command` or `container GTM-1234`.
    var intervalOrigin = "configuration"
    var logLevel = "info"
    /// Why the last reload failed; nil when it did not.
    var reloadProblem: String?
    /// Settings that were edited in the configuration's files: a reload applies them.
    var edits: [String] = []
    /// Settings that were edited, whether or not they were reloaded: a restart applies them.
    var restartEdits: [String] = []
    /// Why a restart would fail; nil when it would not.
    var restartProblem: String?
    /// What each app has written since the start.
    var apps: [String: AppCounts] = [:]
    /// The destinations, in the order of the configuration, orphans last.
    var destinations: [Destination] = []
    var queue = QueueSnapshot()
    /// How fast the queue grows, in bytes a second, over the last minutes; nil while that is unknown.
    var growth: Double?
    var spool = Spool()
    var containers: [Container] = []
    /// Settings that containers or commands have set, with where they come from; all others are as configured.
    var overrides: [Override] = []

    /// Whether all ledgers add up.
    var balances: Bool {
        queue.intake.balances && destinations.allSatisfy { $0.lanes.allSatisfy(\.ledger.balances) }
    }

    /// What is accepted, `all`, `critical` or `nothing`, and why not all. While collection is disabled, what arrives is consumed and
    /// discarded.
    var accepting: (word: String, reason: String?) {
        guard isEnabled else { return ("nothing", "disabled") }
        return switch queue.accepting {
        case .all: ("all", nil)
        case .critical: ("critical", nil)
        case .nothing(let reason): ("nothing", reason.rawValue)
        }
    }

    /// Some of the files that stay in the spool, because the quarantine could not hold all of their bad lines.
    var stayingPaths: [String] { Array(queue.unkept.values.sorted().prefix(4)) }

    /// When the queue reaches its cap if it goes on growing; nil when it does not grow, or not within 30 days.
    var capReachedIn: Duration? {
        guard let growth, growth > 0, queue.maxSize > queue.storedBytes else { return nil }
        let seconds = Double(queue.maxSize - queue.storedBytes) / growth
        return seconds < 30 * 86_400 ? .seconds(seconds) : nil
    }

    /// The apps, the one with the most events first.
    var busiestApps: [(name: String, counts: AppCounts)] {
        apps.sorted { ($1.value.events, $0.key) < ($0.value.events, $1.key) }.map { ($0.key, $0.value) }
    }

    /// When events go by themselves: `every 6s; archive every 1m`.
    var dispatchText: String {
        func text(_ interval: String) -> String { interval == "off" ? "only by command" : "every \(interval)" }
        let origin = intervalOrigin == "configuration" ? "" : " (set by \(intervalOrigin))"
        let own = destinations.compactMap { destination in
            destination.interval.map { "; \(destination.name) \(text($0))" }
        }
        return text(interval) + origin + own.joined()
    }

    /// How long a destination may take what it wants to before it counts as standing still.
    static let patience: Duration = .seconds(600)

    /// Which destinations make no progress although they should: a reason for each, for readiness.
    ///
    /// What a person ordered (paused, network off, disabled) is no standstill; a destination that is held is one at once;
    /// any other when something waits and nothing was acknowledged for `patience` and an interval.
    /// - Parameter interval: a destination's dispatch interval, by its name; nil when periodic dispatch is off, and then nothing
    ///   is judged but what fails.
    func standstills(interval: (String) -> Duration?) -> [String] {
        destinations.compactMap { destination in
            guard destination.queued > 0 else { return nil }
            let interval = interval(destination.name)
            switch destination.state {
            case .disabled, .networkOff, .paused, .stopping, .orphaned: return nil
            case .held:
                let message = destination.lastFailure?.failure.message
                return "\(destination.name) is held: \(message ?? "see the log")"
            case .active where interval == nil: return nil
            case .active, .retryAfter, .offline, .breakerOpen, .waitingForRetry: break
            }
            let quietSince = max(destination.lastAcknowledged ?? started, started)
            let waitsSince = destination.oldest ?? now
            guard now - max(quietSince, waitsSince) > StatusReport.patience + (interval ?? .zero) else { return nil }
            let events = HumanText.plural(destination.queued, "event")
            return "\(destination.name): nothing was acknowledged for \(HumanText.duration(now - quietSince)) "
                + "although \(events) wait\(destination.queued == 1 ? "s" : "")"
        }
    }
}
