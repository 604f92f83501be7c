//  Intake: what happens to a line between the spool and the queue: the event's pass, the containers' rules, the route, the
//  open chunk, the commit; old files and quarantined lines that are read again go the same way, each with its own intake.
//  Promise: a commit holds just what its checkpoints cover, in order; a line is taken, or offered again, never both.
//  It knows nothing of SQL, of sending, or of who asks: the queue is a `CommitStore`, whoever watches is an `EventAudience`.

internal import Containers
package import EventLoops
internal import Events
internal import Host
package import Logs
package import Model
internal import Spool

/// Takes lines from the spool, turns them into events, and hands them to the queue: the hot path between the two.
///
/// It lives on the reader's loop. What it holds in memory is bounded by what the spool takes between two commits.
package final class Intake: SpoolSink {
    let store: any CommitStore
    let loop: EventLoop
    let time: any TimeSource
    let log: Log
    let figures: IntakeFigures
    private let clock: ClockTrust
    let tap: (any EventAudience)?
    let kind: Kind

    @exclusivity(unchecked) var pass: EventPass
    private var random = KernelRandom()
    var compressors = Compressors()
    private(set) var settings: IntakeSettings
    /// The ways that events go: those of the configuration, then those that tags named.
    var routes: [Route]
    var shipped: [ShippedWay: Int] = [:]
    /// Open chunks by route, normal before critical.
    var open: [[OpenChunk]] = []
    /// What containers ask for; nil where there can be none.
    let rules: IntakeRules?
    let calls: TagCalls
    /// What the rules wait for, after a `take` that took less than all.
    var obstacle: Obstacle?
    /// An event on its way through the rules.
    var scratch = LineBuffer(capacity: 1024)
    var apps: [String: AppCounts] = [:]

    var pending = Commit()
    /// The bytes that `pending` holds, packed as they are.
    var pendingBytes = 0

    private var wasTrusted: Bool?
    var unreported: [QuarantineRecord.Reason: Int] = [:]
    var nextReport = BootInstant(nanoseconds: .min)
    var madeTooLarge: MadeTooLarge?
    var nextTooLargeReport = BootInstant(nanoseconds: .min)

    /// How many cuts the log has told of, and when it may tell of more.
    var cutsTold = (count: 0, next: BootInstant(nanoseconds: .min))

    let turn = Turnstile()
    /// The commit that waits for room: one at a time, because they take turns.
    var waitingForRoom: CheckedContinuation<Void, any Error>?
    /// Whether waiting for room has ended for good.
    var isStopping = false
    /// Set when a commit was given up: what follows it must not become durable either.
    var hasGivenUp = false
    /// A commit was given up because the agent stops.
    struct GivenUp: Error {}

    /// Whose lines an intake takes. But for the spool's it remembers nothing of its events for later ones.
    enum Kind {
        case spool
        /// Those of files that are read in place, and of journals.
        case place
        /// Old files: they go in the normal lane, and their age counts from now (ac12).
        case backfill
        /// Those that were quarantined.
        case reread

        /// Whether its events are those of another time, which change nothing for others.
        var isOld: Bool { self == .backfill || self == .reread }
    }

    var isBackfill: Bool { kind == .backfill }

    /// The intake of a spool, or of files that are read in place. That keeps sessions and names for this life of the process
    /// only.
    ///
    /// - Parameters:
    ///   - place: tells what the intake of a place remembers from that of others; nil for the spool's.
    ///   - memory: what the queue has kept; entries of others are left alone.
    ///   - rules: what containers ask for; nil where there can be none.
    ///   - loop: the reader's.
    package convenience init(
        _ settings: IntakeSettings, ofPlace place: String? = nil, store: any CommitStore, memory: [String: [UInt8]],
        figures: IntakeFigures, clock: ClockTrust, tap: (any EventAudience)? = nil, rules: IntakeRules? = nil,
        on loop: EventLoop, time: any TimeSource, log: Log
    ) {
        let functions = rules?.functions
        self.init(
            settings, place == nil ? .spool : .place, store: store, figures: figures, clock: clock, tap: tap,
            rules: rules, calls: TagCalls(functions, aside: place.map { "read/\($0)" }), on: loop, time: time, log: log)
        if place == nil {
            pass.restore(memory, using: &random)
            rules?.engine.restore(memory)
        }
        calls.start(calls.restore(memory), on: loop)
    }

    init(
        _ settings: IntakeSettings, _ kind: Kind, store: any CommitStore, figures: IntakeFigures, clock: ClockTrust,
        tap: (any EventAudience)? = nil, rules: IntakeRules?, calls: TagCalls, on loop: EventLoop,
        time: any TimeSource, log: Log
    ) {
        (self.settings, self.kind, self.tap, self.store) = (settings, kind, tap, store)
        (self.clock, self.loop, self.time, self.log) = (clock, loop, time, log)
        (self.figures, self.rules, self.calls) = (figures, rules, calls)
        pass = EventPass(options: settings.events)
        routes = settings.routes
        open = settings.routes.map { _ in [OpenChunk(priority: .normal), OpenChunk(priority: .critical)] }
        openCountries()
    }

    /// Takes up changed settings: what was taken before is closed under the old ones, or discarded if they end collection.
    package func configure(_ settings: IntakeSettings) {
        closeAll()
        if !settings.isCollecting { discardPending() }
        self.settings = settings
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
            pass.useCountries(try CountryDatabase(path: path).country(of:))
        } catch {
            log.warning("new country database not used", ["hint": error.message])
        }
    }

    private func discardPending() {
        for chunk in pending.chunks {
            countNotStored(.discarded(reason: "disabled"), chunk.priority, to: chunk.destinations, events: chunk.events)
        }
        pending.chunks = []
        pendingBytes = 0
    }

    /// Calls `body` when all commits that had begun are durable or given up.
    package func whenSettled(_ body: @escaping @Sendable () -> Void) { turn.whenFree(body) }

    /// Starts a session of an app; its `start_session` goes with the next commit. False unless sessions are manual.
    package func startSession(of app: String) -> Bool {
        let now = time.wallTime
        let source = SpoolSource(app: app, path: "", producer: nil)
        rules?.refresh()
        guard settings.isCollecting, rules?.awaited(for: app) == nil,
            pass.startSession(eventSource(source), at: now, isSynchronised: clock.isTrusted(at: time), using: &random)
        else { return false }
        writeSessionStart(settings.routeIndex(of: app), source, 0, at: now)
        return true
    }

    /// Takes whole lines; what is not taken is offered again.
    func takeLines(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        obstacle = nil
        // Lines may come one by one, each taken before the bound was passed.
        guard pendingBytes < settings.commitBytes,
            let base = lines.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return 0 }
        let now = time.wallTime
        let routeIndex = settings.routeIndex(of: source.app)
        let route = routes[routeIndex]
        let normal = open[routeIndex][0]
        let critical = open[routeIndex][1]
        let limits = route.chunks
        let commitBytes = settings.commitBytes
        rules?.refresh()
        let rules = rules.flatMap { $0.isIdle ? nil : $0 }
        (pass.withheld, pass.isSearched, pass.hiding) = rules?.engine.hiding(of: source.app) ?? (.none, false, nil)
        pass.begin(
            eventSource(source), producer: source.producer, path: source.path, wasClosed: source.wasClosed, at: now,
            isSynchronised: isClockTrusted(), using: &random)
        normal.turn(to: source)
        critical.turn(to: source)
        let addition = pass.maxAddition
        let isStored = settings.isCollecting && !route.destinations.isEmpty
        let isWatched = tap?.isWatched == true
        if settings.isCollecting, self.rules?.awaited(for: source.app) != nil {
            obstacle = .document
            return 0
        }
        // A tag may name destinations where the configuration names none.
        let isTaken = isStored || (settings.isCollecting && rules != nil)

        var position = 0
        // Set while the line is read whose first bytes were zeros, and are kept by now.
        var isWithinLine = false
        while position < lines.count {
            defer { if position > 0, base[position - 1] == 0x0A { isWithinLine = false } }
            // Archives unpack to hundreds of megabytes of empty lines.
            if base[position] == 0x0A {
                position += 1
                continue
            }
            let verdict = pass.read(base, from: position, to: lines.count)
            let start = position
            position = verdict.next
            switch verdict.kind {
            case .accepted where isTaken:
                let size = pass.length + addition
                if size > commitBytes {
                    guard size <= settings.largestEvent else {
                        keepTooLarge(
                            UnsafeRawBufferPointer(rebasing: lines[start..<position]), source, offset + Int64(start))
                        continue
                    }
                    // Huge for this queue: it gets its own commit, so that the commit fits.
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
                chunk.count(eventTime: isBackfill ? now : verdict.eventTime, acceptedAt: now, at: offset + Int64(start))
                // Full, or another like this one would not fit.
                if chunk.events == limits.events || chunk.lines.count + size > limits.bytes {
                    close(chunk, route, isFull: true)
                }
                // Grows with full chunks only: right after one, a commit closes the fewest chunks early.
                if pendingBytes >= commitBytes { return position }
            case .accepted:
                pending.read += 1
                let reason = settings.isCollecting ? "no_destination" : "disabled"
                countNotStored(.discarded(reason: reason), verdict.priority, to: route.destinations)
            case .expired:
                pending.read += 1
                countNotStored(.expired, verdict.priority, to: route.destinations)
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
                guard push(line, by: rules, app: source.app, at: now) else { return start }
            case .blank: break
            }
        }
        return position
    }

    /// Shows the last line of a chunk to whoever watches.
    func show(_ chunk: OpenChunk, from begin: Int, of app: String, _ priority: Priority) {
        tap?.offer(app: app, priority: priority, line: UnsafeRawBufferPointer(rebasing: chunk.lines.bytes[begin...]))
    }

    /// Writes the event of a session's begin: one more, read and accepted. It passes the rules, and is offered once.
    private func writeSessionStart(_ place: Int, _ source: SpoolSource, _ offset: Int64, at now: Timestamp) {
        scratch.removeAll()
        pass.writeSessionStart(into: &scratch)
        if let rules, !rules.isIdle {
            let fate = rules.apply(
                to: scratch.bytes, app: source.app, priority: .normal, at: now,
                largest: min(settings.largestEvent, settings.commitBytes), isNow: true)
            return put(fate, rules, now, place, source, offset, at: now)
        }
        pending.read += 1
        put(scratch.bytes, place, .normal, source, offset, now, at: now)
    }

    /// Whether the time of day can be trusted. The queue asks for itself: its events expire whether lines are read or not.
    package func isClockTrusted() -> Bool {
        let isTrusted = clock.isTrusted(at: time)
        if isTrusted != wasTrusted {
            wasTrusted = isTrusted
            log.info(
                isTrusted
                    ? "the clock is trusted" : "the clock is not trusted yet: nothing expires, no time counts as ahead")
        }
        return isTrusted
    }

    private var holdsEvents: Bool {
        !pending.chunks.isEmpty || open.contains { chunks in chunks.contains { !$0.isEmpty } }
    }

    private func eventSource(_ source: SpoolSource) -> EventSource {
        pass.source(app: source.app, isShared: !source.mayBeCritical, isBackfill: isBackfill, using: &random)
    }
}
