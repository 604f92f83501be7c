public import EventLoops
internal import Glibc
internal import Model

/// What of a block's source its sessions need.
struct BlockSource {
    var mode = SessionMode.off
    var timeout: Int64 = 0
    var isGone = true
    /// The producer that the source itself is, and the app, by their keys in memory.
    var key = ""
    var appKey = ""
    /// Whose keys these are: block after block comes from the same file.
    var keysOf: (app: String, producer: [UInt8]?)?
    /// The producer's place; -1 where none is known.
    var place = -1
    /// As many producers had made room when the places were noted.
    var evictions = 0
    /// The session that the tail holds; 0 for none.
    var serial = 0
    /// The producer of the session that waits for its start to be written; -1 for none.
    var startPlace = -1
}

extension EventPass {
    /// Starts a new session by command.
    ///
    /// - Parameter source: whose; a session of the app is the session of its processes too.
    /// - Returns: false, and nothing has changed, unless sessions are manual. After true, `writeSessionStart` is due.
    public mutating func startSession(
        _ source: EventSource, at now: Timestamp, isSynchronised: Bool, using random: inout some RandomNumberGenerator
    ) -> Bool {
        guard options.session.mode == .manual else { return false }
        begin(source, at: now, isSynchronised: isSynchronised, using: &random)
        beginManualSession(block.appKey, at: now.nanoseconds, id: newSessionID())
        return true
    }

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

    /// Places are looked up again for the next event.
    private mutating func forgetPlaces() {
        block.evictions = sessions.evictions
        block.place = -1
        processPlace = -1
        processText.removeAll()
    }

    /// Whether an event simply goes on with the session that the tail holds: most do.
    @inline(__always)
    mutating func goesOnWithSession(_ time: Timestamp, _ type: EventType) -> Bool {
        guard block.mode == .automatic, block.place >= 0, block.evictions == sessions.evictions, type != .startSession,
            scanner.present & (MemberName.process.bit | MemberName.pid.bit) == 0
        else { return false }
        let slot = sessions.slot(block.place)
        guard slot.serial == block.serial, slot.isAnnounced else { return false }
        return sessions.goesOn(
            block.place, at: min(time.nanoseconds, now.nanoseconds), timeout: block.timeout, isGone: block.isGone)
    }

    /// Finds the session of an event, and puts it in the tail; true when the session's start must be written first.
    @inline(never)
    mutating func resolveSession(_ time: Timestamp, _ type: EventType) -> Bool {
        if block.evictions != sessions.evictions { forgetPlaces() }
        // An event may be ahead of now; its session may not.
        let time = min(time.nanoseconds, now.nanoseconds)
        if type == .startSession { return startedByEvent(time) }
        guard block.mode == .automatic else {
            useManualSession(time)
            return false
        }
        let place = automaticPlace()
        if sessions.goesOn(place, at: time, timeout: block.timeout, isGone: block.isGone) {
            if sessions.slot(place).serial != block.serial { use(sessions.current(place)) }
        } else {
            let before = sessions.slot(place).serial
            let newID = newSessionID()
            use(
                sessions.resolve(
                    place, at: time, now: now.nanoseconds, timeout: block.timeout, isGone: block.isGone, newID: newID))
            if sessions.slot(place).serial != before { counts.sessions["automatic", default: 0] += 1 }
        }
        let slot = sessions.slot(place)
        guard !slot.isAnnounced, slot.serial == block.serial else { return false }
        block.startPlace = place
        return true
    }

    /// A `start_session` event of the app: it begins a session where sessions are manual.
    private mutating func startedByEvent(_ time: Int64) -> Bool {
        let hasOwnID = !wanted.contains(.sessionID)
        switch block.mode {
        case .off: return false
        case .automatic:
            counts[.ignoredSessionStart] += 1
            guard !hasOwnID else { return false }
            // If it is the first word of its producer, it says what we would have said.
            let isDue = resolveSession(Timestamp(nanoseconds: time), .other)
            if isDue { announceSession() }
        case .manual:
            let key = processKey() ?? block.appKey
            guard hasOwnID else {
                beginManualSession(key, at: time, id: newSessionID())
                announceSession()
                return false
            }
            let member = scanner.member(.sessionID)
            guard base[member.value] == .quote, !member.isEscaped, member.text.count <= Sessions.maxIDLength else {
                counts[.ignoredSessionStart] += 1
                return false
            }
            let text = member.text
            beginManualSession(key, at: time, id: (0..<text.count).map { base[text.lowerBound + $0] })
            announceSession()
        }
        return false
    }

    private mutating func beginManualSession(_ key: String, at time: Int64, id: [UInt8]) {
        guard let state else { return }
        let place = sessions.place(of: key, app: state.name)
        sessions.begin(place, at: time, id: id, now: now.nanoseconds)
        counts.sessions["manual", default: 0] += 1
        block.startPlace = place
        use(sessions.current(place))
    }

    private mutating func useManualSession(_ time: Int64) {
        let app = sessions.known(block.appKey)
        let process = processKey().flatMap { sessions.known($0) }
        guard let first = process ?? app else { return use(nil) }
        use(sessions.newest(first, app ?? first, at: time))
    }

    /// The session whose start was written waits no longer.
    mutating func announceSession() {
        guard block.startPlace >= 0 else { return }
        sessions.announce(block.startPlace)
        block.startPlace = -1
    }

    private mutating func use(_ found: Sessions.Session?) {
        guard found?.serial ?? 0 != block.serial else { return }
        block.serial = found?.serial ?? 0
        added.sessionID = found?.id ?? []
        if !tail.replaceSession(added.sessionID) { tail.set(added) }
    }

    private mutating func newSessionID() -> [UInt8] {
        let text = UnsafeMutablePointer<UInt8>.allocate(capacity: EventIDs.length)
        defer { text.deallocate() }
        ids.write(to: text)
        return Array(UnsafeBufferPointer(start: text, count: EventIDs.length))
    }

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

    /// The member that says the process: a text or a number, of at most 64 bytes.
    private mutating func processMember() -> Member? {
        guard scanner.present & (MemberName.process.bit | MemberName.pid.bit) != 0 else { return nil }
        let member = scanner.member(scanner.has(.process) ? .process : .pid)
        switch base[member.value] {
        case .quote, UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
            return member.end - member.value <= Sessions.maxIDLength ? member : nil
        default: return nil
        }
    }

    private mutating func processKey() -> String? {
        guard let state, let member = processMember() else { return nil }
        return Sessions.key(
            app: state.name, process: UnsafeBufferPointer(start: base + member.value, count: member.end - member.value))
    }
}
