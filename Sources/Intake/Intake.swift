// Intake: what happens to a line between the spool and the queue.
//
// A line becomes an event, passes the containers' rules, gets a route, is put into an open chunk, and is
// stored by a commit. What the module promises:
//
// - A commit holds exactly the events that its checkpoints cover, and commits become durable in order. After
//   a crash no event is lost or stored twice.
// - A line is either taken or offered again by the caller, never both.
// - Old files and quarantined lines that are read again pass the same rules as new lines. Each of these
//   sources has an intake of its own, because its commits hold other checkpoints.
//
// The module knows nothing of SQL, HTTP and callers: the queue is a `CommitStore`, and what watches events is
// an `EventAudience`.
//
// Its parts:
//
// - `Intake` (this file): takes lines. `+Rules`: events that rules may concern. `+Problems`: lines for the
//   quarantine.
// - `ChunkBuilder`, with `OpenChunk`, `Route`, `RouteTable` (Chunks): the next commit; events on their way
//   into a chunk, by destinations and priority.
// - `Committer`: makes commits durable in order, and waits for room.
// - `RulesGate`: whether the next line may be read, by what the rules still need.
// - `IntakeReports`: what the log says of lines, each at most once in its time.
// - `IntakeRules`, `TagCalls` (Rules): the rule engine with the questions to functions that events wait for;
//   calls of functions that tags ask for.
// - `RepeatWindow`, `AcceptedIDs` (Repeats): ids of accepted events, so that an event counts once.
// - `SchemaChecks`: events that must match a schema.
// - `Backfill`, `Rereader` (Aside): old files and quarantined lines.
// - `ClockTrust`: whether the time of day may decide about events.
//
// Rules:
//
// - All of it lives on the reader's loop; `IntakeFigures` alone is read from other threads.
// - Memory is bounded: `takeLines` ends when a commit's worth of bytes is pending, and the spool offers the
//   rest after the commit has begun. Waiting for room in the queue stops the spool, not the apps.
// - The text of lines is hostile, and so are names, ids and sets of destinations in it: whatever is
//   remembered by them has a bound. Events never go to the log.
// - A function or a document may be missing for an event. Then `obstacle` says what it waits for, and its
//   file waits in `park`; other files continue.
//
// Begin with `takeLines` below, then `commit` at the end of this file. Decisions are in DESIGN.md.

internal import Containers
package import EventLoops
package import Events
internal import Host
package import Logs
package import Model
package import Spool

/// Takes lines from the spool, turns them into events, and hands them to the queue: the hot path between the
/// two.
///
/// It lives on the reader's loop. Its memory is bounded by what the spool hands over between two commits.
package final class Intake: SpoolSink {
    /// The queue.
    let store: any CommitStore
    let time: any TimeSource
    private let log: Log
    private let figures: IntakeFigures
    /// Whether the time of day can be trusted.
    private let clock: ClockTrust
    /// Sees events as they are queued (`spoolship tap`); nil without one.
    let tap: (any EventAudience)?
    let kind: Kind

    /// The pass over each line. Exclusive access is not checked at run time: the loop is one thread, and the
    /// check costs on each line.
    @exclusivity(unchecked) var pass: EventPass
    private var random = KernelRandom()
    @exclusivity(unchecked) private(set) var settings: IntakeSettings
    /// The next commit. Exclusive access is not checked at run time, as that to the pass.
    @exclusivity(unchecked) var chunks: ChunkBuilder
    /// Makes commits durable.
    let committer: Committer
    /// What the containers' rules still need for the next line.
    @exclusivity(unchecked) var gate: RulesGate
    /// What the log says.
    var reports: IntakeReports
    let schemas: SchemaChecks
    /// Ids of accepted events; nil if repeats are not looked for: in old files, and in quarantined lines that
    /// are read again.
    let accepted: AcceptedIDs?
    /// The event that is passing the rules.
    @exclusivity(unchecked) var scratch = LineBuffer(capacity: 64)
    /// Counts by app, for status and metrics.
    private var apps: [String: AppCounts] = [:]
    /// What the pass has counted of lines that were given back; nil if none were.
    private var givenBack: EventCounts?

    /// Source of the lines. Only the spool's intake remembers names, sessions and the engine's memory for the
    /// next start.
    enum Kind {
        case spool
        /// Files that are read in place, and journals.
        case place
        /// Old files. Their events go in the normal lane, and their age counts from now, so that they do not
        /// expire on arrival.
        case backfill
        /// Lines from the quarantine.
        case reread

        /// Whether the events are of another time: they change no data layer.
        var isOld: Bool { self == .backfill || self == .reread }
    }

    var isBackfill: Bool { kind == .backfill }
    /// Containers' rules; nil if there cannot be any.
    var rules: IntakeRules? { gate.rules }
    private var calls: TagCalls { gate.calls }

    /// The intake of the spool, or of files that are read in place. An intake of a place keeps sessions and
    /// names for the life of the process only.
    ///
    /// - Parameters:
    ///   - place: name of the place, which keeps its rows in the queue's memory apart from others; nil for
    ///     the spool.
    ///   - memory: the queue's memory; entries of other owners are ignored.
    ///   - rules: containers' rules; nil if there cannot be any.
    ///   - compressors, names: those of other intakes on the loop.
    ///   - loop: the reader's loop.
    package convenience init(
        _ settings: IntakeSettings, ofPlace place: String? = nil, store: any CommitStore,
        memory: [String: [UInt8]],
        figures: IntakeFigures, clock: ClockTrust, tap: (any EventAudience)? = nil, rules: IntakeRules? = nil,
        repeats: RepeatWindow? = nil, sharing compressors: LoopBound<Compressors>? = nil,
        _ names: SharedNames? = nil, on loop: EventLoop,
        time: any TimeSource, log: Log
    ) {
        let functions = rules?.functions
        self.init(
            settings, place == nil ? .spool : .place, store: store, figures: figures, clock: clock, tap: tap,
            rules: rules, calls: TagCalls(functions, aside: place.map { "read/\($0)" }), repeats: repeats,
            sharing: compressors, names, on: loop, time: time, log: log)
        if place == nil {
            pass.restore(memory, using: &random)
            rules?.engine.restore(memory)
            accepted?.restore(memory)
        }
        calls.start(calls.restore(memory), on: loop)
    }

    init(
        _ settings: IntakeSettings, _ kind: Kind, store: any CommitStore, figures: IntakeFigures,
        clock: ClockTrust,
        tap: (any EventAudience)? = nil, rules: IntakeRules?, calls: TagCalls, repeats: RepeatWindow? = nil,
        sharing compressors: LoopBound<Compressors>? = nil, _ names: SharedNames? = nil,
        on loop: EventLoop, time: any TimeSource, log: Log
    ) {
        self.settings = settings
        self.kind = kind
        self.tap = tap
        self.store = store
        self.clock = clock
        self.time = time
        self.log = log
        self.figures = figures
        chunks = ChunkBuilder(settings, isOfOneApp: kind == .place, sharing: compressors)
        committer = Committer(store, on: loop, log: log)
        gate = RulesGate(rules, calls, isOld: kind.isOld)
        reports = IntakeReports(log)
        schemas = SchemaChecks(settings.schemas)
        accepted = repeats.map { AcceptedIDs($0) }
        accepted?.configure(settings.repeats)
        // Not `LoopBound`, which traps here: the start makes intakes on another thread than the loop's.
        pass = EventPass(options: settings.events, isOfOneApp: kind == .place, sharing: names)
        openCountries()
    }

    /// Applies changed settings. Lines read before are closed under the old ones, or discarded if the
    /// new ones end collection.
    package func configure(_ settings: IntakeSettings) {
        chunks.configure(settings)
        self.settings = settings
        pass.configure(settings.events)
        schemas.configure(settings.schemas)
        accepted?.configure(settings.repeats)
        openCountries()
    }

    /// Opens the country database, of which a newer version may be on disk. If it cannot be opened, the last
    /// good one stays in use.
    private func openCountries() {
        guard let path = settings.countryDatabase else { return pass.useCountries(nil) }
        do throws(HostError) {
            pass.useCountries(try CountryDatabase(path: path).country(of:))
        } catch {
            log.warning("new country database not used", ["hint": error.message])
        }
    }

    /// Calls `body` when all commits that had begun are durable or given up.
    package func whenSettled(_ body: @escaping @Sendable () -> Void) { committer.whenSettled(body) }

    /// What the first line that was not taken waits for; nil: a commit.
    var obstacle: RulesGate.Obstacle? { gate.obstacle }

    /// Whether the next commit should be soon: it holds a critical event, a full chunk, or calls that are
    /// made once their events are durable.
    package var isUrgent: Bool { chunks.isUrgent || gate.holdsCalls }

    /// Takes whole lines, and counts for the app what became of them; see `takeLines`.
    package func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        let read = chunks.pending.read
        let quarantined = chunks.pending.quarantined.count
        let records = pass.counts.records
        let taken = takeLines(lines, from: source, at: offset)
        assert(taken >= 0 && taken <= lines.count, "more lines are taken than were offered")
        var counts = AppCounts()
        counts.quarantined = chunks.pending.quarantined.count - quarantined
        counts.events = chunks.pending.read - read - counts.quarantined
        counts.records = pass.counts.records - records
        counts.bytes = taken
        counts.lastRead = counts.events > 0 ? time.wallTime : nil
        apps.note(source.app, counts)
        return taken
    }

    /// Gives memory back that only lines need, because none was read for a while. The spool's intake keeps
    /// its own: there is one of it, and hundreds of others.
    package func rest() {
        guard kind == .place else { return }
        pass.release()
        chunks.releaseMemory()
        scratch.removeAll(keepingCapacity: 64)
    }

    /// Counts a line of an app that the spool could not read.
    func noteQuarantined(_ app: String) {
        var counts = AppCounts()
        counts.quarantined = 1
        apps.note(app, counts)
    }

    /// Starts a session of an app by command; its `start_session` event goes with the next commit. Returns
    /// false, without a change, unless sessions are manual and the app's events may be read now.
    package func startSession(of app: String) -> Bool {
        let now = time.wallTime
        let source = SpoolSource(app: app, path: "", producer: nil)
        rules?.refresh()
        guard settings.isCollecting, rules?.awaited(for: app) == nil,
            pass.startSession(
                eventSource(source), at: now, isSynchronised: clock.isTrusted(at: time), using: &random)
        else { return false }
        writeSessionStart(settings.routeIndex(of: app), source, 0, at: now)
        return true
    }

    /// Takes whole lines of a source.
    ///
    /// - Parameters:
    ///   - lines: one line or many, each with its line feed.
    ///   - offset: offset in the file of the first byte.
    /// - Returns: the number of bytes that were taken, up to the end of a line. The rest is offered again:
    ///   after a commit, or when `obstacle` is gone.
    func takeLines(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int {
        gate.reset()
        // The spool may call several times before it commits. Without this check each call could take one
        // more line.
        guard chunks.pendingBytes < settings.commitBytes,
            let base = lines.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return 0 }
        let now = time.wallTime
        let routeIndex = settings.routeIndex(of: source.app)
        let route = chunks.routes[routeIndex]
        let normal = chunks.open[routeIndex][0]
        let critical = chunks.open[routeIndex][1]
        let commitBytes = settings.commitBytes
        rules?.refresh()
        // Without a container in force the loop below asks no rules.
        let rules = rules.flatMap { $0.isIdle ? nil : $0 }
        (pass.withheld, pass.isSearched, pass.hiding) =
            rules?.engine.hiding(of: source.app) ?? (.none, false, nil)
        let isTrusted = isClockTrusted()
        pass.begin(
            eventSource(source), producer: source.producer, path: source.path, wasClosed: source.wasClosed,
            at: now,
            isSynchronised: isTrusted, using: &random)
        let schemas = schemas.ready(for: source.app, gate.rules)
        let accepted = accepted?.ready(at: now, isSynchronised: isTrusted)
        normal.beginSource(source)
        critical.beginSource(source)
        // Pieces that are read before their turn become durable together with the record that they belong to.
        // So no event between them may have to wait for a function, and they must fit into the same commit.
        pass.mostBytesAhead = rules?.asksFunctions == true ? 0 : commitBytes / 8
        let addition = pass.maxAddition
        let isOn = settings.isCollecting && settings.consent?.states.isDisabled(source.app) != true
        let isStored = isOn && !route.destinations.isEmpty
        let isWatched = tap?.isWatched == true
        let asksConsent = settings.consent?.concerns(route.destinations, of: source.app) == true
        guard !settings.isCollecting || gate.mayRead(source.app) else { return 0 }
        // A tag may name destinations although the configuration names none for the app.
        let isTaken = isStored || (isOn && rules != nil)

        var position = 0
        // True while the rest of a line is read whose first bytes were zeros, which have gone to the
        // quarantine already. Such a line cannot be offered again from its beginning.
        var isWithinLine = false
        while position < lines.count {
            defer { if position > 0, base[position - 1] == 0x0A { isWithinLine = false } }
            // Skipped here and not by the pass: archives unpack to hundreds of megabytes of empty lines.
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
                            UnsafeRawBufferPointer(rebasing: lines[start..<position]), source,
                            offset + Int64(start))
                        continue
                    }
                    // The event is huge for this queue: it gets a commit of its own, so that the commit fits.
                    guard !chunks.holdsEvents || isWithinLine || pass.holdsLines else { return start }
                }
                if let schemas, let failure = schemas.failure(in: pass.object, named: pass.name) {
                    // Lines that were read ahead are passed over later, so only the object has them.
                    let unfit =
                        pass.hasReadAhead(from: start)
                        ? UnsafeRawBufferPointer(pass.object)
                        : UnsafeRawBufferPointer(rebasing: lines[start..<position])
                    keepUnfit(unfit, source, offset + Int64(start), failure)
                    if chunks.pendingBytes >= commitBytes, !pass.holdsLines { return position }
                    continue
                }
                if let accepted, accepted.isRepeat(pass.ownID, of: source.app) {
                    chunks.countRead()
                    chunks.count(.discarded(reason: "repeat"), verdict.priority, to: route.destinations)
                    continue
                }
                if verdict.startsSession {
                    writeSessionStart(
                        routeIndex, source, offset + Int64(start), at: now,
                        saying: settings.consent == nil
                            ? nil : ConsentStatement(ofLine: UnsafeRawBufferPointer(pass.object)))
                }
                if let rules, !isStored || rules.engine.mayConcern(name: pass.name) {
                    guard applyRules(verdict, by: rules, routeIndex, source, offset + Int64(start), at: now)
                    else {
                        return start
                    }
                    accepted?.insert(at: now)
                    schemas?.countAccepted()
                    if chunks.pendingBytes >= commitBytes, !pass.holdsLines { return position }
                    continue
                }
                accepted?.insert(at: now)
                schemas?.countAccepted()
                chunks.countRead()
                if asksConsent {
                    putIfConsented(verdict, routeIndex, source, offset + Int64(start), at: now)
                    if chunks.pendingBytes >= commitBytes, !pass.holdsLines { return position }
                    continue
                }
                // Two calls: a variable for either chunk would be retained and released for each line.
                let place = offset + Int64(start)
                if verdict.priority == .critical, !isBackfill {
                    write(verdict, size, into: critical, route, source, at: place, now, isWatched)
                } else {
                    write(verdict, size, into: normal, route, source, at: place, now, isWatched)
                }
                // `pendingBytes` has grown only if a chunk was closed as full just now. So the commit closes
                // the fewest chunks before they are full.
                if chunks.pendingBytes >= commitBytes, !pass.holdsLines { return position }
            case .accepted:
                chunks.countRead()
                let reason = isOn ? "no_destination" : ConsentStates.disabledReason
                chunks.count(.discarded(reason: reason), verdict.priority, to: route.destinations)
            case .expired:
                chunks.countRead()
                chunks.count(.expired, verdict.priority, to: route.destinations)
                apps.noteExpired(route.destinations.count, of: source.app)
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
                    UnsafeRawBufferPointer(rebasing: lines[start..<position]), source,
                    at: offset + Int64(start),
                    length: position - start, isRefused: verdict.kind == .refused)
                if chunks.pendingBytes >= commitBytes, !pass.holdsLines { return position }
            case .dataLayer:
                // A push to the data layer is not an event and is not counted. Without `IntakeRules` nothing
                // reads it.
                guard let rules = self.rules else { continue }
                let line = UnsafeRawBufferPointer(rebasing: lines[start..<position])
                // While the app is disabled consent may be withdrawn, which must hold when it is enabled.
                guard isOn || !settings.isCollecting else {
                    pushConsent(line, by: rules, app: source.app)
                    continue
                }
                guard push(line, by: rules, app: source.app, at: now) else { return start }
            case .blank: break
            }
        }
        return position
    }

    /// Writes the line that was read last into a chunk. The chunk is closed before if it has no room for the
    /// line, and afterwards if it is full.
    ///
    /// - Parameter size: most bytes that the line takes.
    @inline(__always)
    private func write(
        _ verdict: Verdict, _ size: Int, into chunk: OpenChunk, _ route: Route, _ source: SpoolSource,
        at offset: Int64, _ now: Timestamp, _ isWatched: Bool
    ) {
        let limits = route.chunks
        if chunk.lines.count + size > limits.bytes, !chunk.isEmpty {
            chunks.close(chunk, route, isFull: true)
        }
        let begin = chunk.lines.count
        pass.write(into: &chunk.lines)
        if isWatched {
            show(chunk, from: begin, of: source.app, verdict.priority)
        }
        chunk.count(
            eventTime: isBackfill ? now : verdict.eventTime, acceptedAt: now, at: offset)
        // Full, or without room for another event of this size.
        if chunk.events == limits.events || chunk.lines.count + size > limits.bytes {
            chunks.close(chunk, route, isFull: true)
        }
    }

    /// Shows the last line of a chunk to the audience.
    func show(_ chunk: OpenChunk, from begin: Int, of app: String, _ priority: Priority) {
        tap?.offer(
            app: app, priority: priority, line: UnsafeRawBufferPointer(rebasing: chunk.lines.bytes[begin...]))
    }

    /// Writes the event of a session's start: one more event, read and accepted. It passes the rules, but
    /// cannot be offered again, so functions that were not asked before give null.
    ///
    /// - Parameter statement: what the session's first event says about consent, which holds for its start.
    private func writeSessionStart(
        _ routeIndex: Int, _ source: SpoolSource, _ offset: Int64, at now: Timestamp,
        saying statement: ConsentStatement? = nil
    ) {
        scratch.removeAll()
        pass.writeSessionStart(into: &scratch)
        if let rules, !rules.isIdle {
            let fate = rules.apply(
                to: scratch.bytes, app: source.app, file: source.path, priority: .normal, at: now,
                largest: min(settings.largestEvent, settings.commitBytes), isNow: true)
            return put(fate, rules, now, routeIndex, source, offset, at: now, saying: statement)
        }
        chunks.countRead()
        put(scratch.bytes, routeIndex, .normal, source, offset, now, at: now, saying: statement)
    }

    /// Puts the event that was read into the chunk of the destinations that may get it by consent.
    private func putIfConsented(
        _ verdict: Verdict, _ routeIndex: Int, _ source: SpoolSource, _ offset: Int64, at now: Timestamp
    ) {
        scratch.removeAll(keepingCapacity: 1 << 20)
        pass.write(into: &scratch)
        put(
            scratch.bytes, routeIndex, isBackfill ? .normal : verdict.priority, source, offset,
            verdict.eventTime,
            at: now)
    }

    /// Whether the time of day can be trusted; the log reports changes. The queue asks separately: its events
    /// expire whether lines are read or not.
    package func isClockTrusted() -> Bool {
        let isTrusted = clock.isTrusted(at: time)
        reports.note(isClockTrusted: isTrusted)
        return isTrusted
    }

    /// The pass's source for a file.
    private func eventSource(_ source: SpoolSource) -> EventSource {
        pass.source(app: source.app, isShared: !source.mayBeCritical, isBackfill: isBackfill, using: &random)
    }

    // MARK: Commits

    /// Returns when what was committed before survives a power cut. Files are removed only then.
    package func persist() async throws { try await store.sync() }

    /// Whether a file must stay, because the quarantine could not hold all of its bad lines.
    package func mustStay(_ file: [UInt8]) -> Bool { store.mustStay(file) }

    /// Makes all lines since the last commit durable, together with `progress`.
    package func commit(_ progress: SpoolProgress) async throws {
        try await commit(progress, remembering: [:])
    }

    /// Makes all lines since the last commit durable, together with `progress` and further rows of
    /// the queue's memory. The commit ends before anything suspends, so that lines taken meanwhile belong to
    /// the next one.
    ///
    /// - Throws: if the agent stops, or the store is closed. Every later commit then throws as well.
    package func commit(_ progress: SpoolProgress, remembering memory: [String: [UInt8]]) async throws {
        var commit = takeCommit()
        commit.progress = progress
        commit.memory.merge(memory.merging(progress.memory) { _, new in new }.mapValues { $0 }) { _, new in
            new
        }
        let newCalls = calls.takeNew()
        let offered = gate.takeOffered()
        do {
            try await committer.commit(commit)
            calls.start(newCalls)
            rules?.offer(offered)
        } catch {
            // Their events are read again after the next start, and ask again. Without this the row of a stop
            // (`takeLeftCalls`) would hold these calls, too, and each would be made twice.
            calls.forget(newCalls)
            throw error
        }
    }

    /// Ends the present commit and returns it with all that must be durable with its events.
    func takeCommit() -> Commit {
        var commit = chunks.takeCommit()
        commit.memory.merge(calls.takeMemory()) { _, new in new }
        commit.memory.merge(accepted?.takeMemory() ?? [:]) { _, new in new }
        // The memory of pass and engine (names of the day, sessions, throttles, data layers) is stored with
        // the spool's commits only: it must not be ahead of the spool's checkpoint.
        if kind == .spool {
            let rules = rules
            let ofPass = pass.takeMemory { rules?.engine.hiddenMemory(of: $0) ?? (false, false) }
            commit.memory.merge(ofPass) { _, new in new }
            if let rules {
                commit.memory.merge(rules.engine.takeMemory()) { _, new in new }
            }
        }
        publish(commit)
        return commit
    }

    /// Counts that go back if what was taken since is not stored.
    struct CountsBefore {
        fileprivate var events: EventCounts
        fileprivate var apps: [String: AppCounts]
    }

    var counts: CountsBefore { CountsBefore(events: pass.counts, apps: apps) }

    /// What the pass has counted, without what was given back.
    private var eventCounts: EventCounts {
        guard let givenBack else { return pass.counts }
        var counts = pass.counts
        counts.remove(givenBack)
        return counts
    }

    /// Forgets what was taken since the last commit: it is not stored, and neither counted nor reported. It
    /// is offered again. What rules have counted stays: a throttle may let fewer of these events through.
    func giveBack(to before: CountsBefore) {
        _ = chunks.takeCommit()
        calls.forget(calls.takeNew())
        var counts = pass.counts
        counts.remove(before.events)
        givenBack = givenBack ?? EventCounts()
        givenBack?.add(counts)
        apps = before.apps
    }

    /// Publishes the counts as of a commit, and logs what is due.
    private func publish(_ commit: Commit) {
        let counts = eventCounts
        reports.report(commit.quarantined, counts, at: time.bootTime)
        if let found = schemas.takeReport(at: time.bootTime) {
            reports.reportUnfit(found.count, event: found.name, found.text)
        }
        rules?.publish()
        figures.update {
            $0.events = counts
            $0.names = pass.nameCounts
            $0.apps = apps
            $0.schemas = schemas.counts
            for record in commit.quarantined { $0.quarantined[record.reason, default: 0] += 1 }
        }
    }

    /// Calls of functions that are left after the last commit at a stop, for one more row of memory. Without
    /// it, calls that were answered since that commit are made again.
    package func takeLeftCalls() -> [String: [UInt8]?] {
        // The events of new calls are not durable and are read again, with their calls.
        calls.forget(calls.takeNew())
        return calls.takeMemory()
    }

    /// Forgets data layers and sessions in which something is found. Commits that began before may still
    /// store them; `whenSettled` says when they are over.
    package func forget(_ isFound: ([UInt8]) -> Bool) {
        rules?.engine.forgetLayers(isFound)
        pass.forgetSessions(isFound)
    }

    /// Tells the intake, on the reader's loop, that the queue has published a change.
    package func queueChanged() { committer.queueChanged() }

    /// Ends waiting for room. Commits that do not fit throw, and what they held is read again after the next
    /// start.
    package func stopWaiting() { committer.stopWaiting() }
}
