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
// - `EventPass` (this file): the interface, and what is kept between lines. Its extensions are in the order
//   in which a line passes them: `+Text` and `+Repair` for lines that are not JSON as they are, `+Verdict`
//   for the decision, `+Members`, `+Limits` and `+Sessions` for events, `+Records` for records, `+Additions`
//   and `+Output` for what is written.
// - `JSONScanner` (Scanning): validates a line and finds the members that matter, sixteen bytes at a time.
// - `RawWalk` (Scanning): walks over the members of text that was validated before; used by rules, too.
// - `Sessions`, `DistinctNames`, `EventIDs`, `AppState`: what is remembered of producers and apps.
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
// Begin with `read` and `write` below, then `judge` in `EventPass+Verdict.swift`. Decisions are in DESIGN.md.

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

    /// Texts that go to the quarantine because tags could not find in them what they hide. Takes effect with
    /// the next `read`.
    public var withheld = WithheldTexts.none
    /// Whether patterns of tags search texts. If so, limits that cut texts allow them instead, from the next
    /// `begin` on: a pattern would not find a secret of which a limit has cut off one half.
    public var isSearched = false
    /// Members that tags hide; nil for none. From the next `begin` on, no name, time or severity is taken
    /// from them, because a copy of a hidden value would leave the machine under another name.
    public var hiding: HiddenPaths?

    /// The name of the last event, if its verdict was `accepted`; valid until the next `read`.
    public internal(set) var name = UnsafeBufferPointer<UInt8>(start: nil, count: 0)

    /// Scanner of the line that was read last. Its members are offsets from `base`.
    var scanner: JSONScanner
    var options: EventOptions
    /// Most apps that are remembered. In the drop box that everybody may write to each user may be an app, so
    /// the number of apps is not under the operator's control.
    static let mostApps = 1024
    /// Settings and names of each app that was read, by app.
    var states: [String: AppState] = [:]
    /// Number of calls of `begin` so far. The app with the lowest `lastUse` was not read for the longest time
    /// and is forgotten first.
    private var uses = 0

    // The source whose lines are read, and what of it each line needs.
    /// App of the present source; nil before the first `begin`. The fields that follow are copies of what
    /// each line needs, so that the hot path does not go through the class.
    var state: AppState?
    /// Limits of the app; those that cut texts allow them while `isSearched`.
    var limits = EventLimits()
    /// Event names that the app has used today; owned by `state`.
    var names: UnsafeMutablePointer<DistinctNames>?
    var defaultPriority = Priority.normal
    /// Whether the event's own `"priority": "critical"` and `"type": "crash"` count.
    var mayBeCritical = true
    /// Sessions of the present source.
    var block = BlockSource()
    /// Whether any priority rule can fit an event of the app. If not, `rule(for:own:)` is not called.
    var hasRules = false
    /// Time of day that `begin` was given: the time of observation of all events until the next `begin`.
    var now = Timestamp(nanoseconds: 0)
    /// Events before this time are expired. The least number while the clock is not trusted, and for old
    /// files.
    var oldest = Timestamp(nanoseconds: .min)
    /// Events after this time are quarantined. The greatest number while the clock is not trusted.
    var newest = Timestamp(nanoseconds: .max)

    /// The kind of the app's lines by its settings. `isRecord` has the kind of the last line.
    var kind = LineKind.event
    /// How a container's runtime has wrapped the lines.
    var wrapping = Wrapping()
    /// Format of lines of text; nil if the app's lines are JSON or are not parsed.
    var textFormat: TextFormat?
    /// Whether lines are neither wrapped nor parsed: `read` then goes straight to the scanner.
    private var isPlain = true
    /// The object that a line of text became; `base` points into it until the next line.
    var textRecord = RecordWriter()
    /// Absolute path of the file that is read; empty for other sources.
    var file = ""
    /// Time at which the container's runtime received the line, from its wrapper; nil if the wrapper has no
    /// readable time.
    var outerTime: Timestamp?
    /// Streams whose last line was a piece of a longer line, or ended before the value of a member. The key
    /// is the file's producer followed by the stream's name; for a journal it is the process. If tags hide
    /// something, the next line of such a stream goes to the quarantine: it may be the rest of a hidden
    /// value, without its name. At most 4,096.
    var unfinished: Set<[UInt8]> = []
    /// Name of the append file that is read; empty for drop files.
    var producer: [UInt8] = []
    /// Whether others than the app may have written the lines: then a record's `app` member is replaced.
    var isShared = false

    // The line that was read last.
    /// Memory that the scanner's offsets refer to: the block, or `repaired`, or `textRecord`.
    var base: UnsafePointer<UInt8>
    /// Members that `write` adds to the last line.
    var wanted: Additions = []
    /// Replacements and removals in the last line; unordered until `copyEdited` sorts them.
    var edits: [Edit] = []
    /// Bytes that `edits` insert.
    var scratch: [UInt8] = []
    /// Storage of `name` if the name is not in the block byte for byte: it had escapes, was cut, or was
    /// missing.
    var nameText = LineBuffer(capacity: 1024)
    /// `now` of the block whose first cut was noted in `counts.lastCut`; later cuts of the block are only
    /// counted.
    var cutNotedAt: Timestamp?
    /// Verdict for the line if a check fails: `quarantined` or `refused`.
    var failure = Verdict.Kind.quarantined
    /// JSON text of members that go before the other additions, without the comma before the first one. At
    /// most `frontBytes` beside the name and the pod: `maxAddition` counts on it.
    var front: [UInt8] = []
    /// Whether the last line was judged as a record. If so, members with our names are its data.
    public internal(set) var isRecord = false
    /// Name of the agent's id if the record has an `id` of its own; nil: the agent's id is called `id`.
    var otherIDName: Tail.OtherIDName?
    /// Copy of the line that was scanned if the block's bytes could not be: UTF-8 repaired, unwrapped, or
    /// taken out of a string.
    var repaired = LineBuffer(capacity: 1024)
    /// Text of the event's address as offsets from `base`; nil if it has none.
    var address: Range<Int>?
    /// Whether the settings name a member that holds an address.
    var hasAddress = false
    /// Whether the properties of the last line have a member of that name.
    var hasAddressProperty = false

    /// Reader of RFC 3339 texts; remembers the last date.
    var times = TimestampReader()
    /// Writer of RFC 3339 texts; remembers the last second.
    var timeWriter = TimestampWriter()

    // Added members.
    var ids = EventIDs()
    /// Additions to events, rendered once a block.
    var tail = Tail()
    /// Additions to records: as `tail`, with the host's name instead of the device, and the file's path.
    var recordTail = Tail()
    /// The values that `tail` was made of.
    var added = AddedMembers()

    // Sessions.
    /// Sessions of all producers.
    var sessions = Sessions()
    /// The `process` or `pid` value of the last event that had one, with its quotes, and its producer's place
    /// (-1 for none). Events of one process follow each other, so the look-up by key is rarely needed.
    var processText = LineBuffer(capacity: 128)
    var processPlace = -1

    // Countries by address.
    /// Look-up of a country by address; nil without a country database.
    var lookup: ((String) -> CountryCode?)?

    /// Names that the settings of any app look for, beside those of `MemberName`.
    private var watched: WatchedNames

    /// - Parameter isOfOneApp: whether all lines are of one app. Then the scanner keeps one row of property
    ///   names instead of eight: there may be a pass for each of hundreds of such apps.
    package init(options: EventOptions = EventOptions(), isOfOneApp: Bool = false) {
        self.options = options
        watched = WatchedNames([])
        scanner = JSONScanner(nameRows: isOfOneApp ? 1 : NamePlaces.rows)
        base = UnsafePointer(bitPattern: 8).unsafelyUnwrapped
        configure(options)
    }

    // MARK: Sources

    /// Takes over new settings. The scanner looks for the new names at once, so call this between two blocks;
    /// the rest holds from the next `begin` on.
    public mutating func configure(_ options: EventOptions) {
        self.options = options
        let apps = [options.defaults] + options.apps.sorted { $0.key < $1.key }.map(\.value)
        watched = WatchedNames(apps.flatMap(\.paths))
        scanner.watch(watched)
        scanner.addressName = Array(options.addressMember.utf8)
        hasAddress = !options.addressMember.isEmpty
        address = nil
        hasAddressProperty = false
        for state in states.values { state.configure(options, watched) }
        wrapping.readsTextMembers = reads(["message", "stream"].map { Array($0.utf8) })
        wrapping.readingFormats = [:]
    }

    /// Whether any of these members is looked for by some app's settings, or is the address.
    private func reads(_ names: [[UInt8]]) -> Bool {
        names.contains { watched.slot(of: $0) != nil || options.addressMember.utf8.elementsEqual($0) }
    }

    /// Whether records of a format have to be scanned, because they may have a member that is looked for.
    /// Patterns of unknown names always are. Remembered for each format until the settings change.
    private mutating func readsMembers(of format: TextFormat) -> Bool {
        let key = ObjectIdentifier(format)
        if let known = wrapping.readingFormats[key] { return known }
        let found = format.memberNames.map { reads($0) } ?? true
        wrapping.readingFormats[key] = found
        return found
    }

    /// Most bytes over which pieces of one line of a container are joined when lines of the other stream
    /// stand between them; 0 joins no such pieces. The joined pieces are read before their turn, so the
    /// caller of `read` must not commit while `holdsLines`.
    public var mostBytesAhead: Int {
        get { wrapping.mostAhead }
        set { wrapping.mostAhead = newValue }
    }

    /// Whether lines behind the last one were already read as parts of a record. A commit at this place would
    /// store the record, and after a restart its later pieces would be read a second time.
    public var holdsLines: Bool { wrapping.holdsLines }

    /// Makes a source of lines; cheap once the app is known.
    ///
    /// - Parameters:
    ///   - app: the app that the lines belong to.
    ///   - isShared: whether the lines come through the drop box that everybody may write to. Their events
    ///     are critical only if the app's settings say so.
    ///   - isBackfill: whether the lines are of old files. Nothing of them expires.
    ///   - random: source of the seed for the hashes of names, so that nobody can choose names that collide.
    public mutating func source(
        app: String, isShared: Bool = false, isBackfill: Bool = false,
        using random: inout some RandomNumberGenerator
    ) -> EventSource {
        EventSource(state: state(of: app, using: &random), isShared: isShared, isBackfill: isBackfill)
    }

    /// The state of an app; made when the app is first seen.
    private mutating func state(of app: String, using random: inout some RandomNumberGenerator) -> AppState {
        if let known = states[app] { return known }
        let made = AppState(app, seed: random.next(), options, watched)
        states[app] = made
        return made
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
        var memory: [String: [UInt8]?] = [:]
        for state in states.values {
            let stores = !hides(state.name).names
            guard state.names.pointee.isChanged && stores || state.storesNames && !stores else { continue }
            state.names.pointee.isChanged = false
            state.storesNames = stores
            memory.updateValue(stores ? state.names.pointee.saved() : nil, forKey: "names/\(state.name)")
        }
        for state in forgetIdleApps() { memory.updateValue(nil, forKey: "names/\(state.name)") }
        memory.merge(sessions.changes(isHidden: { hides($0).sessions })) { _, new in new }
        return memory
    }

    /// If there are more than `mostApps`, forgets the apps that were not read for longest until three
    /// quarters of the bound are left. The next event of a forgotten app starts again, without the names of
    /// its day. Forgetting in batches keeps the sort rare.
    private mutating func forgetIdleApps() -> ArraySlice<AppState> {
        guard states.count > EventPass.mostApps else { return [] }
        let idle = states.values.sorted { $0.lastUse < $1.lastUse }.dropLast(EventPass.mostApps * 3 / 4)
        for state in idle { states[state.name] = nil }
        return idle
    }

    /// Number of different event names of each app in the UTC day in which the app was last read.
    public var nameCounts: [String: NameCount] {
        states.mapValues { NameCount(day: $0.names.pointee.day, names: $0.names.pointee.count) }
    }

    /// Takes over what an earlier process stored: keys `names/APP` and `session/APP…`. Entries of other
    /// owners are ignored.
    public mutating func restore(_ memory: [String: [UInt8]], using random: inout some RandomNumberGenerator)
    {
        for (key, bytes) in memory {
            let parts = key.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
            switch parts.first {
            case "names":
                state(of: String(key.dropFirst(6)), using: &random).names.pointee.restore(bytes)
            case "session" where parts.count > 1:
                sessions.restore(key, app: String(parts[1]), bytes)
            default: break
            }
        }
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
        self.now = now
        ids.begin(at: now, using: &random)
        let state = source.state
        self.state = state
        uses += 1
        state.lastUse = uses
        if state.hiding != hiding?.number {
            state.configure(options, watched, hiding)
        }
        let settings = state.settings
        names = state.names
        defaultPriority = settings.priority
        limits = isSearched ? settings.limits.withWholeTexts : settings.limits
        mayBeCritical = settings.mayBeCritical ?? !source.isShared
        kind = settings.kind
        wrapping.format = settings.format
        wrapping.forget()
        textFormat = settings.textFormat
        wrapping.readsParsedMembers = textFormat.map { readsMembers(of: $0) } ?? true
        isPlain = settings.format == nil && textFormat == nil
        textRecord.zone = state.zone
        textRecord.now = now
        outerTime = nil
        self.producer = producer ?? []
        file = path.utf8.first == UInt8(ascii: "/") ? path : ""
        wrapping.pod = settings.format == .cri ? WrappedLine.pod(ofFile: path) : []
        // Any program may write to the journal, and a container's output may contain any `app`: neither
        // proves who wrote the line.
        isShared = source.isShared || settings.isJournal || settings.format != nil
        hasRules = !state.rules.isEmpty
        newest = isSynchronised ? now + settings.maxAhead : Timestamp(nanoseconds: .max)
        if isSynchronised, !source.isBackfill, let maxAge = options.maxAge {
            oldest = now - maxAge
        } else {
            oldest = Timestamp(nanoseconds: .min)
        }
        state.names.pointee.turn(to: now.nanoseconds.floored(by: TimestampReader.day).quotient)
        scanner.keyThreshold = limits.propertyKeyLength.value > 0 ? limits.propertyKeyLength.value : .max
        scanner.valueThreshold =
            limits.propertyValueLength.value > 0 ? limits.propertyValueLength.value : .max
        beginSessions(state, producer, wasClosed)
        beginAdditions(state)
    }

    /// Reads the line that begins at `start`.
    ///
    /// - Parameters:
    ///   - base: the block. It must stay as it is until the event is written.
    ///   - end: the end of the block. The byte before it must be a line feed: the scanner has no other bound.
    /// - Returns: the verdict; its `next` is where the following line begins. If lines were joined to one
    ///   record, `next` is behind the last of the lines that follow each other.
    public mutating func read(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Verdict {
        self.base = base
        guard isPlain else { return readOther(from: start, to: end) }
        let (next, isObject) = scanner.scanLine(base, from: start, to: end)
        guard isObject else { return repair(start, next, end) }
        if !unfinished.isEmpty, unfinished.remove(producer) != nil, withheld == .members {
            return withhold(next)
        }
        return judge(next)
    }

    /// Length in bytes of the object that was read last, from brace to brace. The getter is `mutating`
    /// because otherwise each use would copy the whole pass: see `JSONScanner`.
    public var length: Int { mutating get { scanner.close - scanner.open + 1 } }

    /// The object that was read last as it was written, without edits and additions; valid until the next
    /// `read`.
    public var object: UnsafeBufferPointer<UInt8> {
        mutating get { UnsafeBufferPointer(start: base + scanner.open, count: length) }
    }

    /// JSON text of the id that the app gave the last event; nil if the agent makes the id. A record's `id`
    /// is data, which may repeat, so it is never returned.
    public var ownID: UnsafeBufferPointer<UInt8>? {
        mutating get {
            guard !isRecord, !wanted.contains(.id), scanner.has(.id) else { return nil }
            let member = scanner.member(.id)
            return UnsafeBufferPointer(start: base + member.value, count: member.end - member.value)
        }
    }

    /// Appends the event or record that was read last, as one line with its line feed.
    ///
    /// It is at most `maxAddition` bytes longer than what was read. Two cases are fast: without edits the
    /// object is one copy, and if all usual members are added the additions are one copy.
    public mutating func write(into buffer: inout LineBuffer) {
        let length = scanner.close - scanner.open
        buffer.reserve(
            length + scratch.count + front.count + tail.count + recordTail.count + Tail.idLength + 64)
        var out = buffer.cursor
        if edits.isEmpty, !scanner.hasLineBreaks {
            memcpy(out, base + scanner.open, length)
            out += length
        } else {
            out = copyEdited(to: out)
        }
        if !front.isEmpty {
            out = writeFront(out)
        }
        if isRecord {
            out = recordTail.write(wanted, to: out)
        } else if wanted == .usual {
            memcpy(out, tail.start, tail.count)
            out += tail.count
        } else {
            out = tail.write(wanted, to: out)
        }
        buffer.wrote(to: writeEnd(out))
    }

    /// Writes the id, if one is wanted, the closing brace and the line feed.
    @inline(__always)
    private mutating func writeEnd(_ start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        var out = start
        if wanted.contains(.id) {
            out = if let otherIDName { Tail.write(otherIDName, to: out) } else { Tail.writeIDName(to: out) }
            ids.write(to: out)
            out += EventIDs.length
            out[0] = .quote
            out += 1
        }
        out[0] = .closeBrace
        out[1] = .lineFeed
        return out + 2
    }

    /// Appends the `start_session` event of a session that has just begun. It belongs to the normal lane,
    /// before the event whose verdict said `startsSession`, or after `startSession` has returned true.
    ///
    /// The ledger counts it as one more event, read and accepted. Until it is written, the verdicts of the
    /// session's events go on saying `startsSession`.
    public mutating func writeSessionStart(into buffer: inout LineBuffer) {
        let text =
            "{\"type\":\"start_session\",\"name\":\"start_session\",\"timestamp\":\""
            + "\(Timestamp(nanoseconds: sessions.slot(block.startPlace).start))\""
        var line = Array(text.utf8)
        line.withUnsafeMutableBytes { buffer.append(UnsafeRawBufferPointer($0)) }
        buffer.reserve(tail.count + Tail.idLength + 16)
        var out = buffer.cursor
        memcpy(out, tail.start, tail.count)
        out += tail.count
        // The event that the verdict was about is still to be written: its own choice of members is put back.
        let ofEvent = (wanted, otherIDName)
        (wanted, otherIDName) = (.usual, nil)
        out = writeEnd(out)
        (wanted, otherIDName) = ofEvent
        buffer.wrote(to: out)
        announceSession()
    }

    /// Most bytes by which the object of the present source can grow. The intake adds it to a line's length
    /// before it decides whether the line fits a chunk.
    public var maxAddition: Int {
        // The session's id may be replaced by a longer one, and the time zone's offset by one with more
        // digits, after the tail was measured.
        max(tail.count + Sessions.maxIDLength, recordTail.count) + Tail.idLength + 64
            + max(state?.defaultNameMember.count ?? 0, EventPass.mostNameBytes) + EventPass.frontBytes
            + wrapping.pod.count
    }
}
