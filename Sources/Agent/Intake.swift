internal import Containers
internal import Control
internal import EventLoops
internal import Events
internal import Frames
internal import Glibc
internal import Host
internal import Logs
internal import Model
internal import Queue
internal import Spool

/// Takes lines from the spool, makes events of them, and hands them to the queue: the hot path between the two.
///
/// It lives on the reader's loop. What it holds in memory is bounded by what the spool takes between two commits.
final class Intake: SpoolSink {
    private let store: QueueStore
    private let loop: EventLoop
    private let time: any TimeSource
    private let log: Log
    private let figures: IntakeFigures
    private let clock: ClockTrust
    let tap: EventTap
    /// Whether it takes old files: they go in the normal lane, and their age counts from now (ac12).
    let isBackfill: Bool

    @exclusivity(unchecked) var pass: EventPass
    private var random = KernelRandom()
    private var compressors = Compressors()
    private(set) var settings: IntakeSettings
    private var sources: [SourceKey: EventSource] = [:]
    /// The ways that events go: those of the configuration, then those that tags named.
    var routes: [Route]
    var shipped: [ShippedWay: Int] = [:]
    /// Open chunks by route, normal before critical.
    var open: [[OpenChunk]] = []
    /// What containers ask for; nil where there can be none.
    private let rules: IntakeRules?
    /// An event on its way through the rules.
    var scratch = LineBuffer(capacity: 1024)
    var unknownDestinations = 0

    var pending = Commit()
    /// The bytes that `pending` holds, packed as they are.
    private var pendingBytes = 0

    private var wasTrusted: Bool?
    private var unreported = 0
    private var nextReport = BootInstant(nanoseconds: .min)

    private let turn = Turnstile()
    private let room = WaitingLine()
    /// Set when a commit was given up: what follows it must not become durable either.
    private var hasGivenUp = false

    private struct SourceKey: Hashable {
        let app: String
        let isShared: Bool
    }

    init(
        _ settings: IntakeSettings, store: QueueStore, memory: [String: [UInt8]], figures: IntakeFigures,
        clock: ClockTrust, tap: EventTap = EventTap(), isBackfill: Bool = false,
        containers: ContainersInForce? = nil, functions: (any FunctionCaller)? = nil, on loop: EventLoop,
        time: any TimeSource, log: Log
    ) {
        self.settings = settings
        self.tap = tap
        self.isBackfill = isBackfill
        self.store = store
        self.clock = clock
        self.loop = loop
        self.time = time
        self.log = log
        self.figures = figures
        pass = EventPass(options: settings.events)
        pass.restore(memory, using: &random)
        rules = containers.map { IntakeRules($0, functions: functions) }
        routes = settings.routes
        open = settings.routes.map { _ in [OpenChunk(priority: .normal), OpenChunk(priority: .critical)] }
        rules?.restore(memory)
        openCountries()
    }

    /// Takes up changed settings: what was taken before is closed under the old ones, or discarded if they end collection.
    func configure(_ settings: IntakeSettings) {
        closeAll()
        if !settings.isCollecting { discardPending() }
        self.settings = settings
        sources = [:]
        routes = settings.routes
        shipped = [:]
        open = routes.map { _ in [OpenChunk(priority: .normal), OpenChunk(priority: .critical)] }
        pass.configure(settings.events)
        openCountries()
    }

    /// Opens the country database, which may be a newer one; one that cannot be opened leaves the last good one in use.
    private func openCountries() {
        guard let path = settings.countryDatabase else { return pass.useCountries(nil) }
        do throws(HostError) {
            pass.useCountries(try CountryDatabase(path: path))
        } catch {
            log.warning("no new country database", ["hint": error.message])
        }
    }

    private func discardPending() {
        for chunk in pending.chunks {
            let route = Route(destinations: chunk.destinations, compression: chunk.compression)
            countNotStored(.discarded(reason: "disabled"), chunk.priority, route, events: chunk.events)
        }
        pending.chunks = []
        pendingBytes = 0
    }

    /// Calls `body` when all commits that had begun are durable or given up.
    func whenSettled(_ body: @escaping @Sendable () -> Void) { turn.whenFree(body) }

    /// Starts a new session of an app by command; its `start_session` event goes with the next commit.
    ///
    /// - Returns: false, and nothing has changed, unless sessions are manual.
    func startSession(of app: String) -> Bool {
        let now = time.wallTime
        let source = eventSource(SpoolSource(app: app, path: "", producer: nil))
        guard settings.isCollecting,
            pass.startSession(source, at: now, isSynchronised: clock.isTrusted(at: time), using: &random)
        else { return false }
        rules?.refresh()
        open[settings.routeIndex(of: app)][0].begin(app: app, path: "")
        writeSessionStart(
            settings.routeIndex(of: app), SpoolSource(app: app, path: "", producer: nil), 0, at: now)
        return true
    }

    // MARK: Lines

    func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        guard let base = lines.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
        let now = time.wallTime
        let routeIndex = settings.routeIndex(of: source.app)
        let route = routes[routeIndex]
        let normal = open[routeIndex][0]
        let critical = open[routeIndex][1]
        let limits = settings.chunks
        let commitBytes = settings.commitBytes
        pass.begin(
            eventSource(source), producer: source.producer, wasClosed: source.wasClosed, at: now,
            isSynchronised: isClockTrusted(), using: &random)
        normal.begin(app: source.app, path: source.path)
        critical.begin(app: source.app, path: source.path)
        let addition = pass.maxAddition
        let isStored = settings.isCollecting && !route.destinations.isEmpty
        let isWatched = tap.isWatched
        rules?.refresh()
        let rules = rules.flatMap { $0.engine.isIdle ? nil : $0 }
        // A tag may name destinations where the configuration names none.
        let isTaken = isStored || (settings.isCollecting && rules != nil)

        var position = 0
        // Set while the line is read whose first bytes were zeros, and are kept by now.
        var isWithinLine = false
        while position < lines.count {
            defer { if position > 0, base[position - 1] == 0x0A { isWithinLine = false } }
            let verdict = pass.read(base, from: position, to: lines.count)
            let start = position
            position = verdict.next
            switch verdict.kind {
            case .accepted where isTaken:
                let size = position - start + addition
                if size > commitBytes {
                    guard size <= settings.largestEvent else {
                        keepTooLarge(
                            UnsafeRawBufferPointer(rebasing: lines[start..<position]), source, offset + Int64(start))
                        continue
                    }
                    // Huge for this queue: it gets a commit of its own, so that the commit fits.
                    guard !holdsEvents || isWithinLine else { return start }
                }
                if verdict.startsSession { writeSessionStart(routeIndex, source, offset + Int64(start), at: now) }
                if let rules, !isStored || rules.engine.mayConcern(name: pass.name) {
                    guard take(verdict, by: rules, routeIndex, source, offset + Int64(start), at: now) else {
                        return start
                    }
                    if pendingBytes >= commitBytes { return position }
                    continue
                }
                pending.read += 1
                let isUrgent = verdict.priority == .critical && !isBackfill
                let chunk = isUrgent ? critical : normal
                if chunk.lines.count + size > limits.bytes, !chunk.isEmpty { close(chunk, route, isFull: true) }
                let begin = chunk.lines.count
                pass.write(into: &chunk.lines)
                if isWatched { show(chunk, from: begin, of: source.app, verdict.priority) }
                chunk.count(
                    eventTime: isBackfill ? now : verdict.eventTime, acceptedAt: now, at: offset + Int64(start))
                // Full, or another like this one would not fit.
                if chunk.events == limits.events || chunk.lines.count + size > limits.bytes {
                    close(chunk, route, isFull: true)
                }
                // Grows with full chunks only: right after one is the best place for a commit, the fewest chunks are
                // closed early then.
                if pendingBytes >= commitBytes { return position }
            case .accepted:
                pending.read += 1
                let reason = settings.isCollecting ? "no_destination" : "disabled"
                countNotStored(.discarded(reason: reason), verdict.priority, route)
            case .expired:
                pending.read += 1
                countNotStored(.expired, verdict.priority, route)
            case .quarantined, .refused:
                if let zeros = Intake.leadingZeros(base, start..<position) {
                    keepProblem(
                        UnsafeRawBufferPointer(rebasing: lines[start..<min(zeros, start + 4096)]), source,
                        at: offset + Int64(start), length: zeros - start, isRefused: false)
                    position = zeros
                    isWithinLine = true
                    continue
                }
                keepProblem(
                    UnsafeRawBufferPointer(rebasing: lines[start..<position]), source, at: offset + Int64(start),
                    length: position - start, isRefused: verdict.kind == .refused)
                if pendingBytes >= commitBytes { return position }
            case .dataLayer:
                // No event, nothing to count; without containers nothing reads it either.
                guard let rules = self.rules else { continue }
                let line = UnsafeRawBufferPointer(rebasing: lines[start..<position])
                if case .needs = rules.push(line, app: source.app, at: now) { return start }
            case .blank: break
            }
        }
        return position
    }

    func quarantine(_ record: QuarantineRecord) {
        pending.read += 1
        pending.quarantined.append(record)
        pendingBytes += record.content.count
    }

    /// Shows the last line of a chunk to whoever watches.
    func show(_ chunk: OpenChunk, from begin: Int, of app: String, _ priority: Priority) {
        tap.offer(app: app, priority: priority, line: UnsafeRawBufferPointer(rebasing: chunk.lines.bytes[begin...]))
    }

    /// Writes the event that says that a session has begun: an event more, read and accepted.
    private func writeSessionStart(_ place: Int, _ source: SpoolSource, _ offset: Int64, at now: Timestamp) {
        if let rules, !rules.engine.isIdle {
            return writeSessionStart(by: rules, place, source, offset, at: now)
        }
        let route = routes[place]
        let chunk = open[place][0]
        if chunk.lines.count + pass.maxAddition > settings.chunks.bytes, !chunk.isEmpty {
            close(chunk, route, isFull: true)
        }
        pending.read += 1
        let begin = chunk.lines.count
        pass.writeSessionStart(into: &chunk.lines)
        if tap.isWatched { show(chunk, from: begin, of: source.app, .normal) }
        chunk.count(eventTime: now, acceptedAt: now, at: offset)
        if chunk.events == settings.chunks.events { close(chunk, route, isFull: true) }
    }

    /// Whether the time of day can be trusted; the queue is told when that changes, because its events expire too.
    private func isClockTrusted() -> Bool {
        let isTrusted = clock.isTrusted(at: time)
        if isTrusted != wasTrusted {
            wasTrusted = isTrusted
            log.info("clock looked at", ["trusted": isTrusted])
            Task(executorPreference: loop) { [store] in await store.allowExpiry(isTrusted) }
        }
        return isTrusted
    }

    /// Whether the next commit has events already.
    private var holdsEvents: Bool {
        !pending.chunks.isEmpty || open.contains { chunks in chunks.contains { !$0.isEmpty } }
    }

    private func keepTooLarge(_ line: UnsafeRawBufferPointer, _ source: SpoolSource, _ offset: Int64) {
        pending.read += 1
        pending.quarantined.append(
            QuarantineRecord(
                reason: .neverFits, detail: "an event of \(line.count) bytes does not fit queue.max_size",
                app: source.app, path: source.path, offset: offset, length: Int64(line.count),
                content: Array(line.prefix(4096)), time: time.wallTime))
        pendingBytes += min(line.count, 4096)
    }

    private func eventSource(_ source: SpoolSource) -> EventSource {
        let key = SourceKey(app: source.app, isShared: !source.mayBeCritical)
        if let known = sources[key] { return known }
        let made = pass.source(app: key.app, isShared: key.isShared, isBackfill: isBackfill, using: &random)
        // Names of apps come from users of the spool: without a bound they would fill the memory.
        if sources.count >= 4096 { sources.removeAll() }
        sources[key] = made
        return made
    }

    func close(_ chunk: OpenChunk, _ route: Route, isFull: Bool) {
        do throws(FrameError) {
            let made = try chunk.close(for: route, limits: settings.chunks, isFull: isFull, with: &compressors)
            pendingBytes += made.frame.count
            pending.chunks.append(made)
        } catch {
            // Only want of memory ends here; going on would lose the chunk, and the spool still has it.
            preconditionFailure("cannot pack a chunk: \(error.message)")
        }
    }

    func closeAll() {
        for (index, chunks) in open.enumerated() {
            for chunk in chunks where !chunk.isEmpty { close(chunk, routes[index], isFull: false) }
        }
    }

    func countNotStored(
        _ fate: NotStored.Fate, _ priority: Priority, _ route: Route, events: Int = 1
    ) {
        let place = pending.notStored.firstIndex {
            $0.fate == fate && $0.priority == priority && $0.destinations == route.destinations
        }
        if let place {
            pending.notStored[place].events += events
        } else {
            pending.notStored.append(
                NotStored(priority: priority, destinations: route.destinations, fate: fate, events: events))
        }
    }

    /// Where the line begins that zeros stand before: a power cut leaves them where a writer's last bytes were, and what
    /// is appended later is not to go with them. Nil where there are none, or nothing else.
    private static func leadingZeros(_ base: UnsafePointer<UInt8>, _ line: Range<Int>) -> Int? {
        guard base[line.lowerBound] == 0, let end = line.first(where: { base[$0] != 0 }), end < line.upperBound - 1
        else { return nil }
        return end
    }

    private func keepProblem(
        _ line: UnsafeRawBufferPointer, _ source: SpoolSource, at offset: Int64, length: Int, isRefused: Bool
    ) {
        let problem = pass.problem
        pending.read += 1
        if isRefused { pending.refused += 1 }
        pending.quarantined.append(
            QuarantineRecord(
                reason: isRefused ? .refused : problem?.reason ?? .notJSON, detail: problem?.detail ?? "",
                app: source.app, path: source.path, offset: offset, length: Int64(length), content: Array(line),
                time: time.wallTime))
        pendingBytes += line.count
    }

    // MARK: Commits

    func persist() async throws { try await store.sync() }

    func commit(_ progress: SpoolProgress) async throws {
        var commit = takeCommit()
        commit.progress = progress
        let calls = rules?.takeNewCalls() ?? []

        // In order: a later checkpoint must never be durable before the events of an earlier one.
        let ticket = turn.drawTicket()
        await turn.takeTurn(ticket)
        defer { turn.passTurn() }
        guard !hasGivenUp else { throw WaitingLine.Ended() }
        do {
            try await persist(commit)
            if let rules {
                rules.start(calls)
                // Events that wait for functions are offered again once this returns.
                try await rules.settled()
            }
        } catch {
            hasGivenUp = true
            throw error
        }
    }

    /// All that was taken since the last commit.
    func takeCommit() -> Commit {
        closeAll()
        var commit = pending
        pending = Commit()
        pendingBytes = 0
        commit.memory.merge(pass.takeMemory()) { _, new in new }
        if let rules { commit.memory.merge(rules.takeMemory()) { _, new in new } }
        publish(commit)
        return commit
    }

    private func persist(_ commit: Commit) async throws {
        while true {
            do {
                switch try await store.store(commit) {
                case .stored: return
                case .wait: try await waitForRoom()
                }
            } catch let error as QueueError where error.code != .closed {
                log.error("storing failed, will try again", ["reason": error.code.rawValue, "hint": error.message])
                try await waitForRoom(atMost: .seconds(5))
            }
        }
    }

    /// Returns when the queue may have room again; with a limit, when that time is over at the latest.
    private func waitForRoom(atMost limit: Duration? = nil) async throws {
        let timer = limit.map { limit in loop.after(limit) { self.room.wakeAll() } }
        defer { if let timer { loop.cancel(timer) } }
        try await room.wait(unless: {
            // After an error the queue may look as if it had room: then only time or a change helps.
            guard limit == nil, case .nothing = store.snapshot.accepting else { return limit == nil }
            return false
        })
    }

    /// To be called on the reader's loop when the queue has published a change.
    func queueChanged(_ accepting: QueueSnapshot.Accepting) {
        if case .nothing = accepting { return }
        room.wakeAll()
    }

    /// Ends waiting for room: commits that do not fit throw, and what they held is read again after the next start.
    func stopWaiting() {
        room.end()
        rules?.end()
    }

    /// One log line for what went to the quarantine, at most every ten seconds: where the first one lies, and how many
    /// there were since the last line.
    private func report(_ records: [QuarantineRecord]) {
        unreported += records.count
        guard let first = records.first, time.bootTime >= nextReport else { return }
        nextReport = time.bootTime + .seconds(10)
        log.warning(
            "quarantined",
            [
                "path": first.path, "offset": first.offset, "length": first.length, "reason": first.reason.rawValue,
                "detail": first.detail, "count": unreported, "see": "spoolship quarantine list",
            ])
        unreported = 0
    }

    private func publish(_ commit: Commit) {
        report(commit.quarantined)
        figures.update {
            $0.events = pass.counts
            $0.names = pass.nameCounts
            if let rules {
                $0.rules = rules.engine.counts
                $0.unknownDestinations = unknownDestinations
            }
            for record in commit.quarantined { $0.quarantined[record.reason, default: 0] += 1 }
        }
    }
}
