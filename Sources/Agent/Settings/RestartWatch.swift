internal import Configuration
internal import EventLoops
internal import Glibc
internal import Logs
internal import Metrics
internal import Model
internal import Synchronization

/// The result of the last reload, and the settings in force. Starts and reloads write it; status and metrics
/// read it.
struct Reloads: Sendable {
    /// Why the last reload failed; nil if it succeeded.
    var problem: String?
    /// When settings were last applied.
    var lastSuccess: Timestamp
    /// How many events had been discarded for lack of a destination at the last reload. Only later ones make
    /// the agent unready: the reload may have corrected the cause.
    var withoutDestination = 0
    /// The settings of the last successful reload.
    var configured: Settings
    /// The settings of the start. Settings that only a restart changes are in force as they are here.
    let started: Settings
}

/// Finds out whether a restart would succeed, while the agent runs on with what it has read. A certificate
/// that became invalid, an empty token file or a mistake in the configuration would otherwise be noticed only
/// at the next restart, perhaps at night.
///
/// It looks at the files when somebody asks (`status`, a scrape) and once an hour; it reads them again if one
/// has changed. It lives on the main loop. A separate thread reads the files and ends afterwards, because the
/// disk may be slow.
actor RestartWatch: MetricCollector, LoopActor {
    /// How long a look is valid.
    static let lookEvery = Duration.seconds(10)
    /// After this time the files are read even if none has changed: a certificate may have expired.
    private static let readEvery = Duration.seconds(3600)

    nonisolated let loop: EventLoop
    /// The configuration file that a restart reads.
    private let path: String
    private let version: String
    private let time: any TimeSource
    private let log: Log
    /// True while a look is under way.
    private var isLooking = false
    /// When the files were last checked for changes.
    private var lastLook: BootInstant?
    /// Time at which the files were last read in full, changed or not.
    private var lastRead: BootInstant?
    /// The timer of the next hourly look.
    private var timer: EventLoop.TimerID?
    /// The result of the last look, for other threads.
    private nonisolated let published = Mutex<Look>(Look())

    /// The result of a look.
    private struct Look: Sendable {
        /// A text for each file that changes when the file does.
        var stamps: [String: String] = [:]
        /// Why a restart would fail; nil if it would succeed.
        var problem: String?
        /// The configuration as the files have it; nil if it is invalid.
        var onDisk: Settings?
    }

    /// - Parameter path: the configuration file that a restart reads.
    init(_ path: String, version: String, on loop: EventLoop, time: any TimeSource, log: Log) {
        self.path = path
        self.version = version
        self.loop = loop
        self.time = time
        self.log = log
    }

    /// Why a restart would fail, as of the last look; nil if it would succeed. From any thread.
    nonisolated var problem: String? { published.withLock { $0.problem } }

    /// The settings that were edited since: those that a reload applies, and those that need a restart. From
    /// any thread.
    nonisolated func edits(since reloads: Reloads) -> (reload: [String], restart: [String]) {
        let onDisk = published.withLock { $0.onDisk } ?? reloads.configured
        return (
            SettingsChange.all(from: reloads.configured, to: onDisk).filter { !$0.needsRestart }.map(\.path),
            SettingsChange.all(from: reloads.started, to: onDisk).filter(\.needsRestart).map(\.path)
        )
    }

    /// Begins to check once an hour, so that the log names a problem before anybody asks `status`.
    func start() {
        timer = loop.after(RestartWatch.readEvery) {
            self.assumeIsolated { $0.start() }
            Task(executorPreference: self.loop) { await self.check() }
        }
    }

    /// Looks at the files, unless a look is under way or the last one is younger than `age` (zero after an
    /// edit or a reload).
    func check(olderThan age: Duration = RestartWatch.lookEvery) async {
        let now = time.bootTime
        guard !isLooking, lastLook.map({ now - $0 >= age }) ?? true else { return }
        isLooking = true
        defer { isLooking = false }
        lastLook = now
        let before = problem
        let known =
            lastRead.map { now - $0 < RestartWatch.readEvery } == true
            ? published.withLock { $0.stamps } : [:]
        let path = self.path
        let version = self.version
        let found: Look?
        do throws(SystemError) {
            let thread = try EventLoop(name: "rehearsal")
            try thread.start()
            found = await Task(executorPreference: thread) { RestartWatch.look(path, version, unlike: known) }
                .value
            thread.stop()
        } catch {
            return log.warning("cannot check whether a restart would succeed", ["reason": error.description])
        }
        // Nil means that no file has changed.
        guard let found else { return }
        lastRead = now
        published.withLock { $0 = found }
        guard found.problem != before else { return }
        if let problem = found.problem {
            log.error("a restart would fail, the agent keeps what it has read", ["reason": problem])
        } else {
            log.warning("a restart would succeed again")
        }
    }

    /// Reads what a start reads. Nil if no file differs from the known stamps.
    private static func look(_ path: String, _ version: String, unlike known: [String: String]) -> Look? {
        if !known.isEmpty, known.allSatisfy({ stamp(of: $0.key) == $0.value }) { return nil }
        do throws(ConfigurationError) {
            let loaded = try Settings.loadWithRules(path: path)
            let settings = loaded.settings
            let directory = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
            let named =
                settings.destinations.flatMap(\.namedFiles) + settings.containers.compactMap(\.hashKeyFile)
                + [path, "\(directory)/conf.d"]
            let stamps = (loaded.files + named).map { ($0, stamp(of: $0)) }
            return Look(
                stamps: Dictionary(stamps) { $1 },
                problem: StartupRehearsal(settings, version: version).firstUnmakeable, onDisk: settings)
        } catch {
            // Without stamps the next look reads all files again.
            return Look(problem: error.summary)
        }
    }

    /// A text that changes when the file does. A file system that does not answer is not waited for.
    private static func stamp(of path: String) -> String {
        SilentFiles.answer(about: path) {
            guard let status = FileStatus(path) else { return "\(errno)" }
            return "\(status.inode) \(status.changed.nanoseconds) \(status.size)"
        } ?? "no answer"
    }

    nonisolated func collect(into exposition: inout Exposition) {
        exposition.set(\.restartWouldFail, to: problem != nil)
        Task(executorPreference: loop) { await self.check() }
    }
}
