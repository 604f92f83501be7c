internal import Configuration
internal import EventLoops
internal import Glibc
internal import Logs
internal import Metrics
internal import Model
internal import Synchronization

struct Reloads: Sendable {
    /// Why the last one failed; nil when it did not.
    var problem: String?
    var lastSuccess: Timestamp
    /// How many events had been discarded for want of a destination by then: those since are a reason not to be ready.
    var withoutDestination = 0
    var configured: Settings
    /// The one of the start: of what needs a restart it is in force.
    let started: Settings
}

/// Whether a restart would succeed, while the agent goes on with what it has read: a certificate that became garbage, a token file that
/// is empty, a configuration that was broken since.
///
/// The files are looked at when somebody asks (`status`, a scrape), and read again where one has changed, or once an hour. It lives on
/// the main loop; the disk is asked by a thread that ends with it.
actor RestartWatch: MetricCollector, LoopActor {
    static let lookEvery = Duration.seconds(10)
    private static let readEvery = Duration.seconds(3600)

    nonisolated let loop: EventLoop
    private let path: String
    private let version: String
    private let time: any TimeSource
    private let log: Log
    private var isLooking = false
    private var lastLook: BootInstant?
    private var lastRead: BootInstant?
    private var timer: EventLoop.TimerID?
    private nonisolated let published = Mutex<Look>(Look())

    private struct Look: Sendable {
        var stamps: [String: String] = [:]
        var problem: String?
        /// The configuration as the files have it; nil while they cannot be used.
        var onDisk: Settings?
    }

    /// - Parameter path: the configuration that a restart reads.
    init(_ path: String, version: String, on loop: EventLoop, time: any TimeSource, log: Log) {
        (self.path, self.version, self.loop, self.time, self.log) = (path, version, loop, time, log)
    }

    /// Why a restart would fail, as of the last look; nil when it would not. From any thread.
    nonisolated var problem: String? { published.withLock { $0.problem } }

    /// What the files had otherwise at the last look: what a reload applies, and what needs a restart. From any thread.
    nonisolated func edits(since reloads: Reloads) -> (reload: [String], restart: [String]) {
        let onDisk = published.withLock { $0.onDisk } ?? reloads.configured
        return (
            reloads.configured.changes(to: onDisk).filter { !$0.needsRestart }.map(\.path),
            reloads.started.changes(to: onDisk).filter(\.needsRestart).map(\.path)
        )
    }

    /// Looks once an hour from now on, whether or not anybody asks.
    func start() {
        timer = loop.after(RestartWatch.readEvery) {
            self.assumeIsolated { $0.start() }
            Task(executorPreference: self.loop) { await self.check() }
        }
    }

    /// Looks at the files, unless the last look is younger than `age` (zero after an edit or reload) or under way.
    func check(olderThan age: Duration = RestartWatch.lookEvery) async {
        let now = time.bootTime
        guard !isLooking, lastLook.map({ now - $0 >= age }) ?? true else { return }
        isLooking = true
        defer { isLooking = false }
        lastLook = now
        let before = problem
        let known = lastRead.map { now - $0 < RestartWatch.readEvery } == true ? published.withLock { $0.stamps } : [:]
        let (path, version) = (self.path, self.version)
        let found: Look?
        do throws(SystemError) {
            let thread = try EventLoop(name: "rehearsal")
            try thread.start()
            found = await Task(executorPreference: thread) { RestartWatch.look(path, version, unlike: known) }.value
            thread.stop()
        } catch {
            return log.warning("cannot check whether a restart would succeed", ["reason": error.description])
        }
        // Nothing has changed.
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

    /// Reads what a start reads; nil where each file is as it was.
    private static func look(_ path: String, _ version: String, unlike known: [String: String]) -> Look? {
        if !known.isEmpty, known.allSatisfy({ stamp(of: $0.key) == $0.value }) { return nil }
        do throws(ConfigurationError) {
            let loaded = try Settings.load(path: path)
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
            let first = error.description.split(separator: "\n").first.map(String.init) ?? error.description
            // Nothing is known of the files: the next look reads them all again.
            return Look(problem: first)
        }
    }

    /// Changes whenever a file does.
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
