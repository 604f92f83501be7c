internal import EventLoops
internal import Glibc
internal import Model

/// Finds the session of each event of a block: which producer it is of, and whether that producer's session
/// continues, begins or was an earlier one.
///
/// It returns whether a session begins, and gives the session's id to the tail. `Sessions` decides and
/// remembers; this type knows the source's lines, so that the usual event needs no look-up.
struct SessionFinder: EventFeature, ~Copyable {
    /// Settings that hold from the next `begin` on.
    private var settings = SessionSettings()
    /// Sessions of all producers.
    private var sessions = Sessions()
    /// How sessions begin: not at all, automatically, or by command.
    private var mode = SessionMode.off
    /// Silence in nanoseconds after which a new session begins, if the producer was gone.
    private var timeout: Int64 = 0
    /// The source whose lines are read.
    private var source = SessionSource()
    /// Serial number of the session whose id the tail holds; 0 for none.
    private var serial = 0
    /// Slot of the producer whose session needs a `start_session` event; -1 for none.
    private var startSlot = -1
    /// `Sessions.evictions` when the slots were looked up. If the number has grown, a slot may have another
    /// producer, and an event would continue its session.
    private var evictions = 0
    /// Slot of the source's producer in `sessions`; -1 until the first event without a process looks it up.
    private var sourceSlot = -1
    /// The `process` or `pid` value of the last event that had one, with its quotes, and its producer's slot
    /// (-1 for none). Events of one process follow each other, so the look-up by key is rarely needed.
    private var processText = LineBuffer(capacity: 128)
    private var processSlot = -1

    /// The id in the tail may be replaced by a longer one.
    static var growth: Int { Sessions.maxIDLength }

    /// Start of the session that needs a `start_session` event.
    var start: Timestamp { Timestamp(nanoseconds: sessions.slot(startSlot).start) }

    mutating func configure(_ options: EventOptions, _ scanner: inout JSONScanner) {
        settings = options.session
    }

    /// Prepares for the lines of a source. The tail has no session yet.
    mutating func begin(_ start: SourceStart, _ scanner: inout JSONScanner, _ added: inout SourceAdditions) {
        mode = settings.mode
        timeout = settings.timeout.nanosecondsClamped
        source.begin(start.state.name, mode == .automatic ? start.producer : nil)
        source.isGone = start.producer == nil || start.wasClosed
        source.now = start.now.nanoseconds
        serial = 0
        startSlot = -1
        forgetSlots()
    }

    /// Makes the next event look the producer's slot up again.
    private mutating func forgetSlots() {
        evictions = sessions.evictions
        sourceSlot = -1
        processSlot = -1
        processText.removeAll()
    }

    // MARK: Memory

    /// Forgets sessions whose id or process is found. Call it between two blocks: during a block the finder
    /// keeps slots.
    mutating func forget(_ isFound: ([UInt8]) -> Bool) { sessions.forget(isFound) }

    /// Takes over a session that an earlier process stored.
    mutating func restore(_ key: String, app: String, _ bytes: [UInt8]) {
        sessions.restore(key, app: app, bytes)
    }

    /// What has changed since the last call, for the commit's memory.
    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?] {
        sessions.changes(isHidden: isHidden)
    }

    // MARK: The session of an event

    /// Keeps a usable session id of an event. `null` says that the event belongs to no session: the member is
    /// removed, and no session is added.
    mutating func keepOwn(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {
        guard !line.isRecord, scanner.has(.sessionID) else { return }
        let member = scanner.member(.sessionID)
        if member.isNull(in: scanner.base) {
            output.draft.wanted.remove(.sessionID)
            output.draft.remove(member, of: scanner.base)
        } else if !output.draft.keep(
            member, as: .sessionID, if: member.isIdentifier(in: scanner.base), scanner.base)
        {
            counts[.unusableID] += 1
        }
    }

    /// Puts the id of an event's session into the tail. Returns true if the session's start must be written
    /// first.
    @inline(__always)
    mutating func complete(
        _ line: JudgedLine, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        guard !line.isRecord, mode != .off,
            output.draft.wanted.contains(.sessionID) || line.type == .startSession,
            !goesOn(line.time, line.type, scanner)
        else { return false }
        return resolve(line.time, line.type, &scanner, &output, &counts)
    }

    /// Whether an event continues the session whose id the tail holds. True for most events: then nothing is
    /// looked up.
    @inline(__always)
    private mutating func goesOn(_ time: Timestamp, _ type: EventType, _ scanner: borrowing JSONScanner)
        -> Bool
    {
        guard mode == .automatic, sourceSlot >= 0, evictions == sessions.evictions, type != .startSession,
            scanner.present & (MemberName.process.bit | MemberName.pid.bit) == 0
        else { return false }
        let slot = sessions.slot(sourceSlot)
        guard slot.serial == serial, slot.isAnnounced else { return false }
        return sessions.goesOn(
            sourceSlot, at: min(time.nanoseconds, source.now), timeout: timeout, isGone: source.isGone)
    }

    /// Finds the session of an event and puts its id into the tail. Returns true if the session's start must
    /// be written first.
    @inline(never)
    private mutating func resolve(
        _ time: Timestamp, _ type: EventType, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        // `null` normally means "outside of any session". A `start_session` event always belongs to a
        // session, so its `null` counts as a missing id.
        if type == .startSession, scanner.has(.sessionID), scanner.member(.sessionID).isNull(in: scanner.base)
        {
            output.draft.wanted.insert(.sessionID)
        }
        let hasOwnID = !output.draft.wanted.contains(.sessionID)
        if evictions != sessions.evictions {
            forgetSlots()
        }
        // An event may be ahead of now by a clock's error. Its session may not: if its last event were in the
        // future, it would take in all later events, however long the silence before them.
        let time = min(time.nanoseconds, source.now)
        switch (mode, type) {
        case (.off, _): return false
        case (.automatic, .startSession):
            counts[.ignoredSessionStart] += 1
            // If the event is the first of its session, it replaces the start that the agent would
            // have written.
            if !hasOwnID, resolveAutomatic(time, &scanner, &output, &counts) {
                announce()
            }
            return false
        case (.automatic, _): return resolveAutomatic(time, &scanner, &output, &counts)
        case (.manual, .startSession):
            beginByEvent(time, scanner, hasOwnID: hasOwnID, &output, &counts)
            return false
        case (.manual, _):
            useManual(time, scanner, &output.tails)
            return false
        }
    }

    /// The session of an event by its producer's silence.
    private mutating func resolveAutomatic(
        _ time: Int64, _ scanner: inout JSONScanner, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) -> Bool {
        let index = slotOfProducer(scanner)
        if sessions.goesOn(index, at: time, timeout: timeout, isGone: source.isGone) {
            if sessions.slot(index).serial != serial {
                use(sessions.current(index), &output.tails)
            }
        } else {
            let before = sessions.slot(index).serial
            let newID = SessionFinder.newID(&output.ids)
            use(
                sessions.resolve(
                    index, at: time, now: source.now, timeout: timeout, isGone: source.isGone, newID: newID),
                &output.tails)
            if sessions.slot(index).serial != before {
                counts.sessions["automatic", default: 0] += 1
            }
        }
        let slot = sessions.slot(index)
        guard !slot.isAnnounced, slot.serial == serial else { return false }
        startSlot = index
        return true
    }

    /// An app's own `start_session` event begins a session of its process or of the app.
    private mutating func beginByEvent(
        _ time: Int64, _ scanner: borrowing JSONScanner, hasOwnID: Bool, _ output: inout LineOutput,
        _ counts: inout EventCounts
    ) {
        let key = processKey(scanner) ?? source.appKey
        guard hasOwnID else {
            begin(key, at: time, id: SessionFinder.newID(&output.ids), &output.tails, &counts)
            return announce()
        }
        let member = scanner.member(.sessionID)
        guard scanner.base[member.value] == .quote, !member.isEscaped,
            member.text.count <= Sessions.maxIDLength
        else {
            counts[.ignoredSessionStart] += 1
            return
        }
        let id = UnsafeBufferPointer(start: scanner.base + member.text.lowerBound, count: member.text.count)
        begin(key, at: time, id: Array(id), &output.tails, &counts)
        announce()
    }

    /// Starts a session of an app by command. Returns false, without a change, unless sessions are manual.
    mutating func beginByCommand(_ output: inout LineOutput, _ counts: inout EventCounts) -> Bool {
        guard mode == .manual else { return false }
        let id = SessionFinder.newID(&output.ids)
        begin(source.appKey, at: source.now, id: id, &output.tails, &counts)
        return true
    }

    /// Begins a session of a producer, and puts its id into the tail.
    private mutating func begin(
        _ key: String, at time: Int64, id: [UInt8], _ tails: inout AddedTails, _ counts: inout EventCounts
    ) {
        let index = sessions.slotIndex(of: key, app: source.app)
        sessions.begin(index, at: time, id: id, now: source.now)
        counts.sessions["manual", default: 0] += 1
        startSlot = index
        use(sessions.current(index), &tails)
    }

    /// Puts the newest session of the process or the app into the tail that had begun at that time.
    private mutating func useManual(
        _ time: Int64, _ scanner: borrowing JSONScanner, _ tails: inout AddedTails
    ) {
        let app = sessions.known(source.appKey)
        let process = processKey(scanner).flatMap { sessions.known($0) }
        guard let first = process ?? app else { return use(nil, &tails) }
        use(sessions.newest(first, app ?? first, at: time), &tails)
    }

    /// Notes that the start of the session was written, so that no verdict asks for it again.
    mutating func announce() {
        guard startSlot >= 0 else { return }
        sessions.announce(startSlot)
        startSlot = -1
    }

    /// Puts a session's id into the tail; nil leaves the member out.
    private mutating func use(_ found: Sessions.Session?, _ tails: inout AddedTails) {
        guard found?.serial ?? 0 != serial else { return }
        serial = found?.serial ?? 0
        tails.use(session: found?.id ?? [])
    }

    /// A new id: the next UUIDv7.
    private static func newID(_ ids: inout EventIDs) -> [UInt8] {
        let text = UnsafeMutablePointer<UInt8>.allocate(capacity: EventIDs.length)
        defer { text.deallocate() }
        ids.write(to: text)
        return Array(UnsafeBufferPointer(start: text, count: EventIDs.length))
    }

    // MARK: The producer of an event

    /// Slot of the event's producer: its process if it names one, otherwise the source.
    private mutating func slotOfProducer(_ scanner: borrowing JSONScanner) -> Int {
        if let member = SessionFinder.process(scanner) {
            let text = UnsafeRawBufferPointer(
                start: scanner.base + member.value, count: member.end - member.value)
            if processSlot >= 0, processText.count == text.count, let start = text.baseAddress,
                memcmp(processText.start, start, text.count) == 0
            {
                return processSlot
            }
            if let key = processKey(scanner) {
                processText.removeAll()
                processText.append(text)
                processSlot = sessions.slotIndex(of: key, app: source.app)
                return processSlot
            }
        }
        if sourceSlot < 0 {
            sourceSlot = sessions.slotIndex(of: source.key, app: source.app)
        }
        return sourceSlot
    }

    /// The member that names the process, `process` before `pid`: a text or a number of at most 64 bytes. Nil
    /// for any other value: the event then belongs to its file.
    private static func process(_ scanner: borrowing JSONScanner) -> Member? {
        guard scanner.present & (MemberName.process.bit | MemberName.pid.bit) != 0 else { return nil }
        let member = scanner.member(scanner.has(.process) ? .process : .pid)
        switch scanner.base[member.value] {
        case .quote, UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return member.end - member.value <= Sessions.maxIDLength ? member : nil
        default: return nil
        }
    }

    /// The process's key in memory.
    private func processKey(_ scanner: borrowing JSONScanner) -> String? {
        guard let member = SessionFinder.process(scanner) else { return nil }
        let text = UnsafeBufferPointer(start: scanner.base + member.value, count: member.end - member.value)
        return Sessions.key(app: source.app, process: text)
    }
}

/// What the sessions need to know of the source of a block.
struct SessionSource {
    /// Whether the producer may be gone: its file was closed since the last block, or is a drop file.
    var isGone = true
    /// The block's time of observation, in nanoseconds since 1970.
    var now: Int64 = 0
    /// The app.
    private(set) var app = ""
    /// Key of the source's producer in memory; the app's key if the source is not a producer by itself.
    private(set) var key = ""
    /// Key of the app.
    private(set) var appKey = ""
    /// Producer that `key` was made for.
    private var producer: [UInt8]?

    /// Makes the keys. Consecutive blocks are mostly of the same file, so new keys are rarely needed.
    mutating func begin(_ app: String, _ producer: [UInt8]?) {
        guard appKey.isEmpty || self.app != app || self.producer != producer else { return }
        self.app = app
        self.producer = producer
        appKey = Sessions.key(app: app)
        key = producer.map { Sessions.key(app: app, file: $0) } ?? appKey
    }
}
