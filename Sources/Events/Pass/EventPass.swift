// Events: one pass over each line that the agent reads.
//
// The pass says whether a line is an event, whose, how important and of when; it applies limits, adds
// members, and writes the result as one line. What it promises:
//
// - What it accepts is one JSON object (RFC 8259) on one line, with an id and the time of its observation.
// - All bytes that it need not change travel as they were written.
// - Each line is accounted for by one verdict. A line that is refused or quarantined comes with the reason
//   and the place, never with content.
//
// The module knows nothing of files, of the queue and of destinations.
//
// Its parts:
//
// - `EventPass` (this file): the interface; it calls the parts. `+Events` and `+Records` judge an object.
// - `LineSource`: from a line to the object that is judged. `+Text` and `+Wrapped` for lines that are not
//   JSON as they are; `Withholding` for those that must not leave.
// - `BlockContext`: what holds for all lines of a source.
// - `LineOutput`: the line that is written. `LineDraft`, cleared for each line, is how it is changed;
//   `AddedTails` is what all lines of a source get.
// - `EventFeatures` (Features): limits, country, device and sessions. The judges know only their protocol,
//   `EventFeature`.
// - `PassMemory`, and `Sessions` in the sessions' feature: what is durable together with the events.
// - `JSONScanner` (Scanning): validates a line and finds the members that matter, sixteen bytes at a time.
// - `RawWalk` (Scanning): walks over the members of text that was validated before; used by rules, too.
// - `DistinctNames`, `EventIDs`, `AppState`: what is remembered of apps.
// - `WithheldTexts`: the texts that must not leave because tags could not find secrets in them.
// - `Wrapping`, `WrappedLine`: lines as container runtimes write them.
// - `TimestampText`, `TimestampReader`, `TimestampWriter`, `Severity`, `CountryCode`: values of members.
//
// Words: an *event* was written for Spoolship; it has a usable `name` or a known `type`. A *record* is any
// other object, or a line of text: its members are data, whatever their names are.
//
// Rules:
//
// - A pass belongs to one thread. It keeps offsets into the caller's block, so that block stays in memory and
//   unchanged until the event is written.
// - Lines are hostile: any bytes, any length up to the caller's bound, any number of names. Nothing here may
//   trap, and recursion and memory have bounds. Settings are trusted.
// - A block ends with a line feed. The scanner relies on that instead of checking bounds.
// - The usual event takes a path without allocation. Rare cases are functions marked `@inline(never)`, so
//   that they do not make the code of the usual path larger.
//
// Begin with `read` and `write` below, then `judge` in `EventPass+Events.swift`. Decisions are in DESIGN.md.

public import EventLoops
internal import Glibc
internal import Model
internal import TextFormats

/// The one pass over each line: validates it, decides what it is, and writes it with the added members.
///
/// Use: `begin` for each block of a source; then `read` line after line. After each accepted line call
/// `write` into the buffer of its priority, before the next `read` and while the block is still in memory:
/// the pass keeps offsets into the block, not copies. If the verdict says `startsSession`,
/// `writeSessionStart` goes before `write`. One pass belongs to one thread.
///
/// An event gets the following members, in this order, if it does not have them: `timestamp` (if another
/// member says the time), `app`, `session_id`, `country`, `device`, `observed_at`, `id`. A record gets
/// `name`, `timestamp`, `severity`, `kubernetes`, `app`, `country`, `host_name`, `observed_at`,
/// `log.file.path`, `id`. A member whose value is `null` counts as missing.
public struct EventPass: ~Copyable {
    /// Counts since the pass was made; they never decrease.
    public internal(set) var counts = EventCounts()
    /// What is wrong with the line of the last verdict. Valid only after `quarantined` and `refused`; an
    /// accepted line leaves the problem of an earlier one in place.
    public internal(set) var problem: Problem?
    /// The settings in force.
    var options: EventOptions

    // The source whose lines are read.
    /// Facts that hold for all lines of the block: their app, file and time.
    var block = BlockContext()
    /// Limits, sessions, device and country of its events.
    var features = EventFeatures()

    // The line that was read last.
    /// The scanned bytes of the last line.
    var lines: LineSource
    /// How the last line will be written.
    var output = LineOutput()

    /// The settings of each app, and the names that it uses.
    private var memory: PassMemory
    /// Readers and writers of times.
    var tools = Tools()

    /// - Parameters:
    ///   - isOfOneApp: whether all lines are of one app. Then the scanner keeps one row of property
    ///   names instead of eight: there may be a pass for each of hundreds of such apps.
    ///   - names: those of other passes on the same thread; nil: this one makes its own.
    package init(
        options: EventOptions = EventOptions(), isOfOneApp: Bool = false, sharing names: SharedNames? = nil
    ) {
        self.options = options
        memory = PassMemory(names ?? SharedNames())
        lines = LineSource(nameRows: isOfOneApp ? 1 : NamePlaces.rows)
        configure(options)
    }

    // MARK: Sources

    /// Takes over new settings. The scanner looks for the new names at once, so call this between two blocks;
    /// the rest holds from the next `begin` on.
    public mutating func configure(_ options: EventOptions) {
        self.options = options
        memory.configure(options)
        lines.scanner.watch(memory.watched)
        features.configure(options, &lines.scanner)
        lines.wrapping.readsTextMembers = reads(["message", "stream"].map { Array($0.utf8) })
        lines.wrapping.readingFormats = [:]
    }

    /// Texts that go to the quarantine because tags could not find in them what they hide. Takes effect with
    /// the next `read`.
    public var withheld: WithheldTexts {
        get { lines.withholding.texts }
        set { lines.withholding.texts = newValue }
    }

    /// Whether patterns of tags search texts. If so, limits that cut texts allow them instead, from the next
    /// `begin` on: a pattern would not find a secret of which a limit has cut off one half.
    public var isSearched: Bool {
        get { lines.withholding.isSearched }
        set { lines.withholding.isSearched = newValue }
    }

    /// Members that tags hide; nil for none. From the next `begin` on, no name, time or severity is taken
    /// from them, because a copy of a hidden value would leave the machine under another name.
    public var hiding: HiddenPaths? {
        get { lines.withholding.paths }
        set { lines.withholding.paths = newValue }
    }

    /// Sets the look-up of countries by address; nil ends it.
    ///
    /// - Parameter lookup: gets the text of an address of either IP version, or any other text of at most 64
    ///   bytes that an app has written in its place. Returns nil for an address that is not known.
    public mutating func useCountries(_ lookup: ((_ address: String) -> CountryCode?)?) {
        features.useCountries(lookup)
    }

    /// Whether any of these members is looked for by some app's settings or by a feature.
    private func reads(_ names: [[UInt8]]) -> Bool {
        names.contains { memory.watched.slot(of: $0) != nil || features.reads($0) }
    }

    /// Whether records of a format have to be scanned, because they may have a member that is looked for.
    /// Patterns of unknown names always are. Remembered for each format until the settings change.
    private mutating func readsMembers(of format: TextFormat) -> Bool {
        let key = ObjectIdentifier(format)
        if let known = lines.wrapping.readingFormats[key] { return known }
        let found = format.memberNames.map { reads($0) } ?? true
        lines.wrapping.readingFormats[key] = found
        return found
    }

    /// Most bytes over which pieces of one line of a container are joined when lines of the other stream
    /// stand between them; 0 joins no such pieces. The joined pieces are read before their turn, so the
    /// caller of `read` must not commit while `holdsLines`.
    public var mostBytesAhead: Int {
        get { lines.wrapping.mostAhead }
        set { lines.wrapping.mostAhead = newValue }
    }

    /// Whether lines behind the last one were already read as parts of a record. A commit at this offset
    /// would store the record, and after a restart its later pieces would be read a second time.
    public var holdsLines: Bool { lines.wrapping.holdsLines }

    /// Whether the record that was read last, from the offset `start` on, has lines that were read before
    /// their turn: they are not among those up to the verdict's `next`.
    public func hasReadAhead(from start: Int) -> Bool { lines.wrapping.hasReadAhead(of: start) }

    /// Makes a source of lines; cheap once the app is known.
    ///
    /// - Parameters:
    ///   - app: the app that the lines belong to.
    ///   - isShared: whether the lines come through the drop box that everybody may write to. Their events
    ///     are critical only if the app's settings say so.
    ///   - isBackfill: whether the lines are of old files. Nothing of them expires.
    ///   - random: source of the seed for the hashes of names, so that an attacker cannot choose names that
    ///     collide.
    public mutating func source(
        app: String, isShared: Bool = false, isBackfill: Bool = false,
        using random: inout some RandomNumberGenerator
    ) -> EventSource {
        EventSource(
            state: memory.state(of: app, options, using: &random), isShared: isShared, isBackfill: isBackfill)
    }

    /// Starts a new session by command.
    ///
    /// - Parameter source: the app. Its session holds for all processes of the app.
    /// - Returns: false, without a change, unless sessions are manual. After true, `writeSessionStart` is
    ///   due.
    public mutating func startSession(
        _ source: EventSource, at now: Timestamp, isSynchronised: Bool,
        using random: inout some RandomNumberGenerator
    ) -> Bool {
        guard options.session.mode == .manual else { return false }
        begin(source, at: now, isSynchronised: isSynchronised, using: &random)
        return features.startSession(&output, &counts)
    }

    // MARK: Memory

    /// What has changed since the last call and must be durable together with the events that were read: for
    /// `Commit.memory`. Values are nil for keys to delete.
    ///
    /// - Parameter hides: whether the sessions and the event names of an app are stored nowhere, because tags
    ///   hide them. What was stored before is deleted.
    public mutating func takeMemory(
        hides: (String) -> (sessions: Bool, names: Bool) = { _ in (false, false) }
    ) -> [String: [UInt8]?] {
        let names = memory.takeNames { hides($0).names }
        return names.merging(features.changes { hides($0).sessions }) { _, new in new }
    }

    /// Forgets sessions whose id or process is found. Call it between two calls of `begin`: the block keeps
    /// places.
    public mutating func forgetSessions(_ isFound: ([UInt8]) -> Bool) { features.forget(isFound) }

    /// Number of different event names of each app in the UTC day in which the app was last read.
    public var nameCounts: [String: NameCount] { memory.nameCounts }

    /// Takes over what an earlier process stored: keys `names/APP` and `session/APP…`. Entries of other
    /// owners are ignored.
    public mutating func restore(_ stored: [String: [UInt8]], using random: inout some RandomNumberGenerator)
    {
        for (key, bytes) in stored {
            let parts = key.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
            switch parts.first {
            case "names":
                let app = memory.state(of: String(key.dropFirst(6)), options, using: &random)
                app.names.pointee.restore(bytes)
            case "session" where parts.count > 1:
                features.restore(key, app: String(parts[1]), bytes)
            default: break
            }
        }
    }

    /// Gives memory back that only reading needs, because nothing is read for a while: there may be a pass
    /// for each of hundreds of apps. The next `begin` gets it again.
    package mutating func release() {
        lines.scanner.release()
        output.tails.release()
    }

    // MARK: Reading

    /// Prepares for the lines of a source. Costs about as much as an event, so call it once for each block or
    /// file.
    ///
    /// - Parameters:
    ///   - producer: name of the append file that the lines come from; nil for drop files.
    ///   - path: the file. Its name contains the pod of a container, and records may get it as a member.
    ///   - wasClosed: whether a writer has closed the file since the lines before. Only then may its producer
    ///     be gone, and a silence may end its session.
    ///   - now: the time of day. Events read until the next `begin` were observed at this time.
    ///   - isSynchronised: whether the clock can be trusted. Otherwise nothing expires and nothing counts as
    ///     ahead: a clock that is wrong by years would discard every event.
    public mutating func begin(
        _ source: EventSource, producer: [UInt8]? = nil, path: String = "", wasClosed: Bool = true,
        at now: Timestamp,
        isSynchronised: Bool, using random: inout some RandomNumberGenerator
    ) {
        let state = source.state
        lines.scanner.prepare()
        output.ids.begin(at: now, using: &random)
        memory.use(
            state, options, lines.withholding.paths,
            day: now.nanoseconds.floored(by: TimestampReader.day).quotient)
        block = BlockContext(source, at: now, maxAge: options.maxAge, isSynchronised: isSynchronised)
        let readsParsed = state.settings.textFormat.map { readsMembers(of: $0) } ?? true
        lines.begin(state, producer: producer, path: path, readsParsed: readsParsed, at: now)
        let start = SourceStart(
            state: state, producer: producer, wasClosed: wasClosed, now: now,
            isSearched: lines.withholding.isSearched, hidesTexts: lines.withholding.texts != .none)
        var added = additions(state, path: path, at: now)
        features.begin(start, &lines.scanner, &added)
        output.tails.begin(added)
    }

    /// What all lines of a source get, whatever the features add. Records get the path of their file, if it
    /// has one and the settings say so.
    private func additions(_ state: AppState, path: String, at now: Timestamp) -> SourceAdditions {
        var added = SourceAdditions()
        added.ofEvents.app = state.quotedName
        added.ofEvents.observedAt = Array(now.description.utf8)
        added.ofRecords = added.ofEvents
        if state.members.filePathSlot != nil, path.utf8.first == UInt8(ascii: "/") {
            added.ofRecords.filePath = JSONText.quoted(path)
        }
        return added
    }

    /// Reads the line that begins at `start`.
    ///
    /// - Parameters:
    ///   - base: the block. It must stay as it is until the event is written.
    ///   - end: the end of the block. The byte before it must be a line feed: the scanner has no other bound.
    /// - Returns: the verdict; its `next` is where the following line begins. If lines were joined to one
    ///   record, `next` is behind the last of the lines that follow each other.
    public mutating func read(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Verdict {
        assert(start < end && base[end - 1] == .lineFeed, "a block to scan does not end with a line feed")
        guard lines.isPlain else { return readOther(base, from: start, to: end) }
        let (next, isObject) = lines.scanner.scanLine(base, from: start, to: end)
        guard isObject else { return judge(lines.repair(base, start, next, end, &counts)) }
        if lines.withholding.isExpecting { return judge(lines.object(next)) }
        return judge(next)
    }

    /// Reads a line that is wrapped, parsed, or both.
    @inline(never)
    private mutating func readOther(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Verdict {
        let reading = lines.read(base, from: start, to: end, &counts)
        guard case .joined(let next, let ahead, let before) = reading else { return judge(reading) }
        let verdict = judge(next)
        if verdict.kind == .accepted || verdict.kind == .expired {
            lines.wrapping.noteReadAhead(ahead, of: start)
            return verdict
        }
        guard let format = lines.wrapping.format else { return verdict }
        return judge(
            lines.readRefused(
                format, base, from: start, to: end, ahead: ahead, countingFrom: before, &counts))
    }

    /// The verdict on a line that was read.
    @inline(never)
    mutating func judge(_ reading: Reading) -> Verdict {
        switch reading {
        case .object(let next), .joined(let next, _, _): return judge(next)
        case .blank(let next): return verdict(.blank, next)
        case .refused(let problem, let next):
            self.problem = problem
            return verdict(.quarantined, next)
        }
    }

    /// A verdict for a line that is not an event: it has no priority and no time.
    @inline(__always)
    mutating func verdict(_ kind: Verdict.Kind, _ next: Int) -> Verdict {
        Verdict(kind: kind, priority: .normal, eventTime: block.now, startsSession: false, next: next)
    }

    // MARK: The line that was read last

    /// The name of the last event or record, if its verdict was `accepted`; valid until the next `read`.
    public var name: UnsafeBufferPointer<UInt8> { output.draft.name }

    /// Whether the last line was judged as a record. If so, members with our names are its data.
    public var isRecord: Bool { output.draft.isRecord }

    /// Memory that the scanner's offsets refer to.
    @inline(__always) var base: UnsafePointer<UInt8> { lines.scanner.base }

    /// Length in bytes of the object that was read last, from brace to brace. The getter is `mutating`
    /// because otherwise each use would copy the whole pass: see `JSONScanner`.
    public var length: Int { mutating get { lines.scanner.close - lines.scanner.open + 1 } }

    /// The object that was read last as it was written, without edits and additions; valid until the next
    /// `read`.
    public var object: UnsafeBufferPointer<UInt8> {
        mutating get { UnsafeBufferPointer(start: base + lines.scanner.open, count: length) }
    }

    /// JSON text of the id that the app gave the last event; nil if the agent makes the id. A record's `id`
    /// is data, which may repeat, so it is never returned.
    public var ownID: UnsafeBufferPointer<UInt8>? {
        mutating get {
            guard !output.draft.isRecord, !output.draft.wanted.contains(.id), lines.scanner.has(.id) else {
                return nil
            }
            let member = lines.scanner.member(.id)
            return UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        }
    }

    /// Appends the event or record that was read last, as one line with its line feed.
    ///
    /// It is at most `maxAddition` bytes longer than what was read. Two cases are fast: without edits the
    /// object is one copy, and if all usual members are added the additions are one copy.
    public mutating func write(into buffer: inout LineBuffer) { output.write(&lines.scanner, into: &buffer) }

    /// Appends the `start_session` event of a session that has just begun. It belongs to the normal lane,
    /// before the event whose verdict said `startsSession`, or after `startSession` has returned true.
    ///
    /// The ledger counts it as one more event, read and accepted. Until it is written, the verdicts of the
    /// session's events go on saying `startsSession`.
    public mutating func writeSessionStart(into buffer: inout LineBuffer) {
        features.writeSessionStart(&output, into: &buffer)
    }

    /// Most bytes by which the object of the present source can grow. The intake adds it to a line's length
    /// before it decides whether the line fits a chunk.
    public var maxAddition: Int {
        // After the tail was measured, a feature may still replace what it has added by longer text.
        max(output.tails.ofEvents.count + EventFeatures.growth, output.tails.ofRecords.count)
            + Tail.idLength + 56
            + max(block.state?.members.defaultName.count ?? 0, EventPass.mostNameBytes) + EventPass.frontBytes
            + lines.wrapping.pod.count
    }
}
