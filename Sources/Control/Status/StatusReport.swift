public import EventLoops
public import Model

/// The state of the agent at one moment: what `status`, `top`, the status page and `GET /v1/status` show.
///
/// Made from published figures; nothing in it is event content or secret.
public struct StatusReport: Sendable, Equatable {
    /// One destination.
    public struct Destination: Sendable, Equatable {
        /// Its name.
        public var name: String
        /// Where it is, without user, password, path and query: `https://logs.example`.
        public var address: String?
        /// Its state.
        public var state: DestinationStateName
        /// Since when, if that is known.
        public var since: Timestamp?
        /// When something is next tried by itself.
        public var nextAttempt: Timestamp?
        /// When it last acknowledged something.
        public var lastAcknowledged: Timestamp?
        /// The last failure, whatever came after it.
        public var lastFailure: LastFailure?
        /// The interval in force for it, as in the configuration, where it is another one than `StatusReport.interval`.
        public var interval: String?
        /// Tokens that pause it.
        public var pauseTokens: [String] = []
        /// Batches that are being sent.
        public var inFlight = 0
        /// Batches that wait for their retry.
        public var retryWaiting = 0
        /// Events that are set aside, by app; the empty name: nobody looked whose they are.
        public var setAside: [String: Int] = [:]
        /// Its lanes, critical first.
        public var lanes: [Lane] = []

        package init(name: String, state: DestinationStateName) {
            self.name = name
            self.state = state
        }

        /// The figures of one of its lanes; zeros for an unknown one.
        public func lane(_ priority: Priority) -> Lane {
            lanes.first { $0.priority == priority } ?? Lane(priority: priority, ledger: Ledger())
        }

        /// All that waits.
        public var queued: Int { lanes.map(\.ledger.queued).reduce(0, +) }
    }

    /// Why an attempt failed.
    public struct LastFailure: Sendable, Equatable {
        /// The HTTP status, where there was one.
        public var status: Int?
        /// The kind of failure.
        public var kind: String
        /// One line for a person.
        public var message: String
        /// The receiver's own words: the beginning of its answer. It may quote an event, so it is for those who may use the
        /// control socket, and not for the log or the page. Nil when it said nothing.
        public var answer: String?
        /// When.
        public var at: Timestamp

        package init(status: Int?, kind: String, message: String, answer: String? = nil, at: Timestamp) {
            self.answer = answer
            self.status = status
            self.kind = kind
            self.message = message
            self.at = at
        }
    }

    /// One priority of a destination.
    public struct Lane: Sendable, Equatable {
        /// Which.
        public var priority: Priority
        /// What happened to all that was accepted.
        public var ledger: Ledger
        /// When the oldest that waits was accepted.
        public var oldest: Timestamp?
        /// Dead letters of it that are kept.
        public var deadLetters = 0

        package init(priority: Priority, ledger: Ledger, oldest: Timestamp? = nil, deadLetters: Int = 0) {
            self.priority = priority
            self.ledger = ledger
            self.oldest = oldest
            self.deadLetters = deadLetters
        }
    }

    /// The queue.
    public struct Queue: Sendable, Equatable {
        /// What it holds, in bytes.
        public var bytes = 0
        /// The cap in force, in bytes.
        public var maxBytes = 0
        /// The database and its WAL, in bytes.
        public var fileBytes = 0
        /// What it accepts: `all`, `critical`, `nothing`.
        public var accepting = "all"
        /// Why not all; nil when all.
        public var acceptingReason: String?
        /// How fast it grows, in bytes a second, over the last minutes; nil while that is unknown.
        public var growth: Double?
        /// Dead letters that are kept, and their bytes.
        public var deadLetters = 0
        /// Their bytes.
        public var deadLetterBytes = 0
        /// Records in quarantine.
        public var quarantined = 0
        /// Their bytes.
        public var quarantineBytes = 0
        /// Records that left the quarantine unread: for room, or by a person.
        public var quarantinePurged = 0
        /// Files that stay in the spool, because the quarantine could not hold all of their bad lines.
        public var filesStaying = 0
        /// Some of them.
        public var stayingPaths: [String] = []
        /// Dead letters that are gone, likewise.
        public var deadLettersPurged = 0

        package init() {}
    }

    /// The spool.
    public struct Spool: Sendable, Equatable {
        /// The directory.
        public var directory = ""
        /// Bytes that are not in the queue yet.
        public var lagBytes = 0
        /// How long the oldest of them have waited, in seconds.
        public var lagSeconds = 0
        /// Files that the agent knows.
        public var files = 0
        /// Why reading waits; nil when it does not.
        public var waits: String?
        /// Files and directories that wait for a second try after a failed system call, by reason.
        public var secondTries: [String: Int] = [:]
        /// Files that are not read because of their names.
        public var passedOver = 0
        /// What a person should fix: whose files cannot be read and why.
        public var complaints: [String] = []
        /// Where files are read that are elsewhere.
        public var places: [Place] = []
        /// The journals that are read.
        public var journals: [Journal] = []

        /// A journal whose entries are read.
        public struct Journal: Sendable, Equatable {
            /// Whose lines they are.
            public var app: String
            /// Its directory; empty for this machine's own journal.
            public var directory: String
            /// Entries that became lines since the start.
            public var entries: Int
            /// How often entries were removed before they were read, since the start.
            public var gaps: Int
            /// Why it is not read; nil: it is.
            public var problem: String?

            package init(app: String, directory: String, entries: Int, gaps: Int, problem: String?) {
                self.app = app
                self.directory = directory
                self.entries = entries
                self.gaps = gaps
                self.problem = problem
            }
        }

        /// A directory in which files are only read.
        public struct Place: Sendable, Equatable {
            /// Whose lines they are.
            public var app: String
            /// The directory.
            public var directory: String
            /// Whether it can be read; it is looked for until it can.
            public var isThere: Bool
            /// Files that are known.
            public var files: Int
            /// Bytes that are not in the queue yet.
            public var unreadBytes: Int

            package init(app: String, directory: String, isThere: Bool, files: Int, unreadBytes: Int) {
                self.app = app
                self.directory = directory
                self.isThere = isThere
                self.files = files
                self.unreadBytes = unreadBytes
            }
        }

        package init() {}
    }

    /// A remotely managed container.
    public struct Container: Sendable, Equatable {
        /// Its id.
        public var id: String
        /// `none`, `default`, `saved`, `network` or `preview`.
        public var source: String
        /// Its version.
        public var version: String
        /// When its source last confirmed it.
        public var confirmed: Timestamp?
        /// What went wrong last; nil when nothing did.
        public var problem: String?
        /// When the draft that rules now ends; nil without one.
        public var previewEnds: Timestamp?

        package init(
            id: String, source: String, version: String, confirmed: Timestamp?, problem: String? = nil,
            previewEnds: Timestamp? = nil
        ) {
            self.previewEnds = previewEnds
            self.id = id
            self.source = source
            self.version = version
            self.confirmed = confirmed
            self.problem = problem
        }
    }

    /// A setting that does not come from the configuration.
    public struct Override: Sendable, Equatable {
        /// The setting: `dispatch.interval`.
        public var setting: String
        /// Its value, as the configuration would write it.
        public var value: String
        /// Where it comes from: `container GTM-1234`.
        public var origin: String

        package init(setting: String, value: String, origin: String) {
            self.setting = setting
            self.value = value
            self.origin = origin
        }
    }

    /// The agent's version.
    public var version = ""
    /// The machine's name.
    public var host = ""
    /// Its process.
    public var processID = 0
    /// When it started.
    public var started: Timestamp
    /// When this was told.
    public var now: Timestamp
    /// What stands in the way of being ready.
    public var obstacles: [String] = []
    /// Whether events are collected.
    public var isEnabled = true
    /// Whether connections may be made.
    public var isNetworkOn = true
    /// Tokens that pause all destinations.
    public var pauseTokens: [String] = []
    /// The dispatch interval where a destination has none of its own, as in the configuration: `6s`, `off`.
    public var interval = "6s"
    /// Where it comes from: `configuration`, `command` or `container GTM-1234`.
    public var intervalOrigin = "configuration"
    /// The log's level.
    public var logLevel = "info"
    /// Why the last reload failed; nil when it did not.
    public var reloadProblem: String?
    /// Settings that were edited in the configuration's files: a reload applies them.
    public var edits: [String] = []
    /// Settings that were edited, whether or not they were reloaded: a restart applies them.
    public var restartEdits: [String] = []
    /// Why a restart would fail; nil when it would not.
    public var restartProblem: String?
    /// The figures of reading.
    public var intake = IntakeLedger()
    /// What each app has written since the start.
    public var apps: [String: AppCounts] = [:]
    /// The destinations, in the order of the configuration, orphans last.
    public var destinations: [Destination] = []
    /// The queue.
    public var queue = Queue()
    /// The spool.
    public var spool = Spool()
    /// The containers, in the order of the configuration.
    public var containers: [Container] = []
    /// Settings that containers have set, with where they come from; all others are as configured.
    public var overrides: [Override] = []

    package init(started: Timestamp, now: Timestamp) {
        self.started = started
        self.now = now
    }

    /// Whether all ledgers add up.
    public var balances: Bool {
        intake.balances && destinations.allSatisfy { $0.lanes.allSatisfy(\.ledger.balances) }
    }

    /// When the queue reaches its cap if it goes on growing; nil when it does not grow, or not within 30 days.
    public var capReachedIn: Duration? {
        guard let growth = queue.growth, growth > 0, queue.maxBytes > queue.bytes else { return nil }
        let seconds = Double(queue.maxBytes - queue.bytes) / growth
        return seconds < 30 * 86_400 ? .seconds(seconds) : nil
    }
}
