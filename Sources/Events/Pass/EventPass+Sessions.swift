public import EventLoops
internal import Glibc
internal import Model

/// What the sessions need to know of the source of a block.
struct BlockSource {
    /// How sessions begin: not at all, automatically, or by command.
    var mode = SessionMode.off
    /// Silence in nanoseconds after which a new session begins, if the producer was gone.
    var timeout: Int64 = 0
    /// Whether the producer may be gone: its file was closed since the last block, or is a drop file.
    var isGone = true
    /// Key of the source's producer in memory; the app's key if the source is not a producer by itself.
    var key = ""
    /// Key of the app.
    var appKey = ""
    /// App and producer that the keys were made for. Consecutive blocks are mostly of the same file, so new
    /// keys are rarely needed.
    var keysOf: (app: String, producer: [UInt8]?)?
    /// Place of the producer in `Sessions`; -1 until the first event without a process looks it up.
    var place = -1
    /// `Sessions.evictions` when the places were looked up. If the number has grown, a place may have another
    /// producer, and an event would continue its session.
    var evictions = 0
    /// Serial number of the session whose id the tail holds; 0 for none.
    var serial = 0
    /// Place of the producer whose session's start is to be written; -1 for none.
    var startPlace = -1
}

extension EventPass {
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
        beginManualSession(block.appKey, at: now.nanoseconds, id: newSessionID())
        return true
    }

    /// Forgets sessions whose id or process is found. Call it between two calls of `begin`: the block keeps
    /// places.
    public mutating func forgetSessions(_ isFound: ([UInt8]) -> Bool) { sessions.forget(isFound) }

    /// Prepares the sessions of a source.
    mutating func beginSessions(_ state: AppState, _ producer: [UInt8]?, _ wasClosed: Bool) {
        block.mode = options.session.mode
        block.timeout = options.session.timeout.nanosecondsClamped
        block.isGone = producer == nil || wasClosed
        let owner = block.mode == .automatic ? producer : nil
        if block.keysOf?.app != state.name || block.keysOf?.producer != owner {
            block.keysOf = (state.name, owner)
            block.appKey = Sessions.key(app: state.name)
            block.key = owner.map { Sessions.key(app: state.name, file: $0) } ?? block.appKey
        }
        block.startPlace = -1
        forgetPlaces()
    }

    /// Makes the next event look the producer's place up again.
    private mutating func forgetPlaces() {
        block.evictions = sessions.evictions
        block.place = -1
        processPlace = -1
        processText.removeAll()
    }

    /// Whether an event continues the session whose id the tail holds. True for most events: then nothing is
    /// looked up.
    @inline(__always)
    mutating func goesOnWithSession(_ time: Timestamp, _ type: EventType) -> Bool {
        guard block.mode == .automatic, block.place >= 0, block.evictions == sessions.evictions,
            type != .startSession,
            scanner.present & (MemberName.process.bit | MemberName.pid.bit) == 0
        else { return false }
        let slot = sessions.slot(block.place)
        guard slot.serial == block.serial, slot.isAnnounced else { return false }
        return sessions.goesOn(
            block.place, at: min(time.nanoseconds, now.nanoseconds), timeout: block.timeout,
            isGone: block.isGone)
    }

    /// Finds the session of an event and puts its id into the tail. Returns true if the session's start must
    /// be written first.
    @inline(never)
    mutating func resolveSession(_ time: Timestamp, _ type: EventType) -> Bool {
        if block.evictions != sessions.evictions {
            forgetPlaces()
        }
        // An event may be ahead of now by a clock's error. Its session may not: if its last event were in the
        // future, it would take in all later events, however long the silence before them.
        let time = min(time.nanoseconds, now.nanoseconds)
        if type == .startSession { return startedByEvent(time) }
        guard block.mode == .automatic else {
            useManualSession(time)
            return false
        }
        let place = automaticPlace()
        if sessions.goesOn(place, at: time, timeout: block.timeout, isGone: block.isGone) {
            if sessions.slot(place).serial != block.serial {
                use(sessions.current(place))
            }
        } else {
            let before = sessions.slot(place).serial
            let newID = newSessionID()
            use(
                sessions.resolve(
                    place, at: time, now: now.nanoseconds, timeout: block.timeout, isGone: block.isGone,
                    newID: newID))
            if sessions.slot(place).serial != before {
                counts.sessions["automatic", default: 0] += 1
            }
        }
        let slot = sessions.slot(place)
        guard !slot.isAnnounced, slot.serial == block.serial else { return false }
        block.startPlace = place
        return true
    }

    /// Handles an app's own `start_session` event: if sessions are manual, it begins one; if they are
    /// automatic, it is sent and counted as ignored.
    private mutating func startedByEvent(_ time: Int64) -> Bool {
        // `null` normally means "outside of any session", which the start of a session cannot be: here it
        // counts as missing.
        if scanner.has(.sessionID), isNull(scanner.member(.sessionID)) {
            wanted.insert(.sessionID)
        }
        let hasOwnID = !wanted.contains(.sessionID)
        switch block.mode {
        case .off: return false
        case .automatic:
            counts[.ignoredSessionStart] += 1
            guard !hasOwnID else { return false }
            // If the event is the first of its session, it takes the place of the start that the agent would
            // have written.
            let isDue = resolveSession(Timestamp(nanoseconds: time), .other)
            if isDue {
                announceSession()
            }
        case .manual:
            let key = processKey() ?? block.appKey
            guard hasOwnID else {
                beginManualSession(key, at: time, id: newSessionID())
                announceSession()
                return false
            }
            let member = scanner.member(.sessionID)
            guard base[member.value] == .quote, !member.isEscaped, member.text.count <= Sessions.maxIDLength
            else {
                counts[.ignoredSessionStart] += 1
                return false
            }
            let text = member.text
            beginManualSession(key, at: time, id: (0..<text.count).map { base[text.lowerBound + $0] })
            announceSession()
        }
        return false
    }

    /// Begins a session of a producer, and puts its id into the tail.
    private mutating func beginManualSession(_ key: String, at time: Int64, id: [UInt8]) {
        guard let state else { return }
        let place = sessions.place(of: key, app: state.name)
        sessions.begin(place, at: time, id: id, now: now.nanoseconds)
        counts.sessions["manual", default: 0] += 1
        block.startPlace = place
        use(sessions.current(place))
    }

    /// Puts the newest session of the process or the app into the tail that had begun at that time.
    private mutating func useManualSession(_ time: Int64) {
        let app = sessions.known(block.appKey)
        let process = processKey().flatMap { sessions.known($0) }
        guard let first = process ?? app else { return use(nil) }
        use(sessions.newest(first, app ?? first, at: time))
    }

    /// Notes that the start of the session was written, so that no verdict asks for it again.
    mutating func announceSession() {
        guard block.startPlace >= 0 else { return }
        sessions.announce(block.startPlace)
        block.startPlace = -1
    }

    /// Puts a session's id into the tail; nil leaves the member out. Ids are mostly equally long, so the tail
    /// is rarely set again.
    private mutating func use(_ found: Sessions.Session?) {
        guard found?.serial ?? 0 != block.serial else { return }
        block.serial = found?.serial ?? 0
        added.sessionID = found?.id ?? []
        if !tail.replaceSession(added.sessionID) {
            tail.set(added)
        }
    }

    /// A new id: the next UUIDv7.
    private mutating func newSessionID() -> [UInt8] {
        let text = UnsafeMutablePointer<UInt8>.allocate(capacity: EventIDs.length)
        defer { text.deallocate() }
        ids.write(to: text)
        return Array(UnsafeBufferPointer(start: text, count: EventIDs.length))
    }

    /// Place of the event's producer: its process if it names one, otherwise the source.
    private mutating func automaticPlace() -> Int {
        if let member = processMember() {
            let text = UnsafeRawBufferPointer(start: base + member.value, count: member.end - member.value)
            if processPlace >= 0, processText.count == text.count, let start = text.baseAddress,
                memcmp(processText.start, start, text.count) == 0
            {
                return processPlace
            }
            if let key = processKey(), let state {
                processText.removeAll()
                processText.append(text)
                processPlace = sessions.place(of: key, app: state.name)
                return processPlace
            }
        }
        if block.place < 0, let state {
            block.place = sessions.place(of: block.key, app: state.name)
        }
        return block.place
    }

    /// The member that names the process, `process` before `pid`: a text or a number of at most 64 bytes. Nil
    /// for any other value: the event then belongs to its file.
    private mutating func processMember() -> Member? {
        guard scanner.present & (MemberName.process.bit | MemberName.pid.bit) != 0 else { return nil }
        let member = scanner.member(scanner.has(.process) ? .process : .pid)
        switch base[member.value] {
        case .quote, UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return member.end - member.value <= Sessions.maxIDLength ? member : nil
        default: return nil
        }
    }

    /// The process's key in memory.
    private mutating func processKey() -> String? {
        guard let state, let member = processMember() else { return nil }
        return Sessions.key(
            app: state.name,
            process: UnsafeBufferPointer(start: base + member.value, count: member.end - member.value))
    }
}
