internal import Model

/// The session that an event belongs to. Pure, bounded, and durable by what `changes` returns.
///
/// A producer is an app together with the process that the event names, or else with the append file it comes
/// from. A session lasts from an event to the last one before a silence of `timeout` at whose end the
/// producer was gone: a process that keeps its file open and writes rarely keeps its session. Time is the
/// events' own, but never later than now, so that a backlog is divided into the sessions in which it was
/// written.
///
/// At most 1,024 producers are remembered. A new one takes the slot of the least recent one; if its app
/// already has a quarter of the slots, the least recent one of that app, so that no app can push out the
/// producers of others. Of each producer the last 32 sessions are kept, and none that ended more than a day
/// ago: they serve events that arrive late.
struct Sessions: ~Copyable {
    static let maxProducers = 1024
    /// Most earlier sessions of a producer.
    static let maxPast = 32
    /// Longest id of a session, and longest process, in bytes.
    static let maxIDLength = 64
    private static let day: Int64 = 86_400_000_000_000

    /// The present session of a producer. A plain value in one block of memory, because each event looks at
    /// one.
    struct Slot {
        /// Time of the session's first event, and of its last one, in nanoseconds since 1970.
        var start: Int64 = 0
        var last: Int64 = 0
        /// Number that distinguishes sessions of this process; 0 while the producer has no session.
        var serial = 0
        /// Index of the app in `apps`.
        var app = 0
        /// Whether the slot has a producer.
        var isUsed = false
        /// Whether the session's `start_session` event was written. If not, verdicts ask for it.
        var isAnnounced = true
        /// Whether the slot has changed since `changes` was last called.
        var isChanged = false
        /// Whether the queue has a row of this producer, which must be deleted if its app's sessions become
        /// hidden.
        var isStored = false
    }

    /// A session with its id: the present one of a producer, or an earlier one.
    struct Session {
        var start: Int64
        var last: Int64
        var serial: Int
        var id: [UInt8]
    }

    /// Slots for `room` producers, of which there are mostly few. A pass for an app that is read in place
    /// mostly has none, and slots for 1,024 would cost it 70 KB.
    private var slots = UnsafeMutablePointer<Slot>.allocate(capacity: 0)
    /// Number of slots: 0, then 8 and its doubles up to `maxProducers`.
    private var room = 0
    /// Id of the present session, earlier sessions with the oldest first, and key, each by the producer's
    /// slot.
    private var ids: [[UInt8]] = []
    private var past: [[Session]] = []
    private var keys: [String] = []
    /// Slot of each producer by its key.
    private var indices: [String: Int] = [:]
    /// Index of each app that has a producer, and of some that had one.
    private(set) var apps: [String: Int] = [:]
    /// Number of indices that were given out; none is used again.
    private var lastApp = 0
    /// Serial number of the last session.
    private var serial = 0
    /// Keys of producers that have lost their slots since the last `changes`.
    private var removed: Set<String> = []
    /// Number of producers that have lost their slots. While it has not changed, a slot that a caller
    /// remembers still has the same producer.
    private(set) var evictions = 0

    deinit { slots.deallocate() }

    /// Doubles the number of slots. Those that have a producer keep their index.
    private mutating func grow() {
        let wider = min(max(8, 2 * room), Sessions.maxProducers)
        let moved = UnsafeMutablePointer<Slot>.allocate(capacity: wider)
        moved.moveInitialize(from: slots, count: room)
        (moved + room).initialize(repeating: Slot(), count: wider - room)
        slots.deallocate()
        slots = moved
        ids += [[UInt8]](repeating: [], count: wider - room)
        past += [[Session]](repeating: [], count: wider - room)
        keys += [String](repeating: "", count: wider - room)
        room = wider
    }

    /// The time between two points, saturating: an app may write any year, and the difference may overflow.
    @inline(__always)
    private static func gap(from earlier: Int64, to later: Int64) -> Int64 {
        let (gap, overflow) = later.subtractingReportingOverflow(earlier)
        return overflow ? (later < earlier ? .min : .max) : gap
    }

    // MARK: Producers

    /// Key of a producer in the queue's memory, by process, by file, or of the app as a whole. `restore`
    /// splits it at the slashes.
    static func key(app: String, process: UnsafeBufferPointer<UInt8>) -> String {
        "session/\(app)/process/\(String(decoding: process.prefix(maxIDLength), as: UTF8.self))"
    }
    static func key(app: String, file: [UInt8]) -> String {
        "session/\(app)/file/\(Hexadecimal.text(file.prefix(64)))"
    }
    static func key(app: String) -> String { "session/\(app)" }

    /// The process in a producer's key, as the event wrote it; empty for other producers.
    private static func process(ofKey key: String) -> [UInt8] {
        let parts = key.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.count == 4 && parts[2] == "process" ? Array(parts[3].utf8) : []
    }

    /// Slot of a producer that has one.
    func known(_ key: String) -> Int? { indices[key] }

    /// Slot of a producer. A new producer gets a free slot, or the one of another producer, which starts
    /// again with its next event.
    mutating func slotIndex(of key: String, app: String) -> Int {
        if let known = indices[key] { return known }
        let appIndex = index(of: app)
        if indices.count == room, room < Sessions.maxProducers {
            grow()
        }
        let all = 0..<room
        let slots = slots
        var index = all.first { !slots[$0].isUsed } ?? 0
        if slots[index].isUsed {
            let own = all.filter { slots[$0].app == appIndex }
            let rivals = own.count >= Sessions.maxProducers / 4 ? own : Array(all)
            index = rivals.min { slots[$0].last < slots[$1].last } ?? 0
            indices[keys[index]] = nil
            removed.insert(keys[index])
            evictions += 1
        }
        removed.remove(key)
        // With the least time it is the first to lose its slot again, until it has a session.
        slots[index] = Slot(last: .min, app: appIndex, isUsed: true)
        ids[index] = []
        past[index] = []
        keys[index] = key
        indices[key] = index
        return index
    }

    /// Index of an app. Names of apps are not under the operator's control, so apps without a producer are
    /// forgotten once there are many.
    private mutating func index(of app: String) -> Int {
        if let known = apps[app] { return known }
        if apps.count >= 2 * Sessions.maxProducers {
            let inUse = Set((0..<room).filter { slots[$0].isUsed }.map { slots[$0].app })
            apps = apps.filter { inUse.contains($0.value) }
        }
        lastApp += 1
        apps[app] = lastApp
        return lastApp
    }

    /// Forgets producers whose process, or the id of one of whose sessions, is found, for the erasure of a
    /// person's data. Their next event starts a new session.
    mutating func forget(_ isFound: ([UInt8]) -> Bool) {
        for index in 0..<room where slots[index].isUsed {
            let names = [Sessions.process(ofKey: keys[index]), ids[index]] + past[index].map(\.id)
            guard names.contains(where: isFound) else { continue }
            indices[keys[index]] = nil
            removed.insert(keys[index])
            evictions += 1
            slots[index] = Slot()
            ids[index] = []
            past[index] = []
            keys[index] = ""
        }
    }

    /// The slot at an index.
    @inline(__always) func slot(_ index: Int) -> Slot { slots[index] }
    /// The present session of a producer.
    func current(_ index: Int) -> Session {
        Session(
            start: slots[index].start, last: slots[index].last, serial: slots[index].serial, id: ids[index])
    }

    // MARK: Automatic

    /// Whether an event continues its producer's session; if so, its time becomes the session's last one.
    @inline(__always)
    mutating func goesOn(_ index: Int, at time: Int64, timeout: Int64, isGone: Bool) -> Bool {
        let slot = slots + index
        guard slot.pointee.serial != 0, time >= slot.pointee.last else { return false }
        guard !isGone || Sessions.gap(from: slot.pointee.last, to: time) < timeout else { return false }
        slot.pointee.last = time
        slot.pointee.isChanged = true
        return true
    }

    /// The session of an event that does not simply continue one: it is the producer's first event, begins a
    /// new session, or is late.
    ///
    /// - Parameters:
    ///   - time: the event's time; at most `now`.
    ///   - timeout: the silence in nanoseconds that ends a session.
    ///   - isGone: whether the producer may be gone; otherwise no silence ends its session.
    ///   - newID: the id of the session if one begins.
    /// - Returns: nil if the event belongs to no session that is remembered. All times are in nanoseconds
    ///   since 1970.
    mutating func resolve(
        _ index: Int, at time: Int64, now: Int64, timeout: Int64, isGone: Bool, newID: [UInt8]
    ) -> Session? {
        if slots[index].serial != 0, time >= slots[index].start {
            if time < slots[index].last || !isGone
                || Sessions.gap(from: slots[index].last, to: time) < timeout
            {
                slots[index].last = max(slots[index].last, time)
                slots[index].isChanged = true
                return current(index)
            }
        }
        // An event of more than a day ago would begin a session that is over and is forgotten at once.
        guard Sessions.gap(from: time, to: now) <= Sessions.day else { return nil }
        // A late event. A session that begins well after now was made by a clock that was ahead, and is over:
        // the event begins a new one.
        if slots[index].serial != 0, time < slots[index].start,
            Sessions.gap(from: now, to: slots[index].start) < timeout
        {
            return late(index, time, timeout)
        }
        begin(index, at: time, id: newID, now: now)
        slots[index].isAnnounced = false
        return current(index)
    }

    /// The session of an event from before the present one: the present one if the event is just before its
    /// start, otherwise the one of its time.
    private mutating func late(_ index: Int, _ time: Int64, _ timeout: Int64) -> Session? {
        let earlier = past[index].last { $0.start <= time }
        let isJustBefore = Sessions.gap(from: time, to: slots[index].start) < timeout
        if isJustBefore, earlier.map({ Sessions.gap(from: $0.last, to: time) >= timeout }) ?? true {
            // Threads that write at the same time do not write in the order of their times.
            slots[index].start = time
            slots[index].isChanged = true
            return current(index)
        }
        return earlier
    }

    // MARK: Manual

    /// Begins a session, and moves the present one to the earlier ones. The new session counts as announced;
    /// `resolve` says otherwise for its own.
    mutating func begin(_ index: Int, at time: Int64, id: [UInt8], now: Int64) {
        if slots[index].serial != 0 {
            past[index].append(current(index))
            past[index].removeAll { Sessions.gap(from: $0.last, to: now) > Sessions.day }
            if past[index].count > Sessions.maxPast {
                past[index].removeFirst()
            }
        }
        serial += 1
        slots[index].serial = serial
        slots[index].start = time
        slots[index].last = time
        slots[index].isAnnounced = true
        slots[index].isChanged = true
        ids[index] = id
    }

    /// The newest session of two producers, a process and its app, that began at or before a time.
    func newest(_ first: Int, _ second: Int, at time: Int64) -> Session? {
        var found: Session?
        for index in first == second ? [first] : [first, second] where slots[index].serial != 0 {
            guard let candidate = (past[index] + [current(index)]).last(where: { $0.start <= time }) else {
                continue
            }
            if candidate.start > found?.start ?? .min {
                found = candidate
            }
        }
        return found
    }

    /// Notes that a session's `start_session` event was written.
    mutating func announce(_ index: Int) {
        slots[index].isAnnounced = true
        slots[index].isChanged = true
    }

    // MARK: Memory

    /// Rows that have changed since the last call, by key; nil for rows to delete: of producers that lost
    /// their slots, and of apps whose sessions are hidden.
    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?] {
        var changes: [String: [UInt8]?] = [:]
        for key in removed { changes.updateValue(nil, forKey: key) }
        removed.removeAll()
        let hidden = Set(apps.filter { isHidden($0.key) }.values)
        for index in 0..<room where !hidden.isEmpty && hidden.contains(slots[index].app) {
            if slots[index].isStored {
                changes.updateValue(nil, forKey: keys[index])
            }
            slots[index].isStored = false
            slots[index].isChanged = false
        }
        for index in 0..<room where slots[index].isChanged {
            slots[index].isStored = true
            slots[index].isChanged = false
            changes.updateValue(encoded(index), forKey: keys[index])
        }
        return changes
    }

    /// The row of a producer: a version byte, whether its session is announced, then for the present and each
    /// earlier session its start, its last time, and its id with a length byte. Numbers are little-endian.
    private func encoded(_ index: Int) -> [UInt8] {
        var bytes: [UInt8] = [1, slots[index].isAnnounced ? 1 : 0]
        func add(_ start: Int64, _ last: Int64, _ id: [UInt8]) {
            for value in [start, last] {
                withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
            }
            bytes.append(UInt8(clamping: id.count))
            bytes += id
        }
        add(slots[index].start, slots[index].last, ids[index])
        for session in past[index] { add(session.start, session.last, session.id) }
        return bytes
    }

    /// Takes over a row that an earlier process stored; what cannot be read is left out.
    mutating func restore(_ key: String, app: String, _ bytes: [UInt8]) {
        guard bytes.count > 2, bytes[0] == 1 else { return }
        var offset = 2
        func number() -> Int64 {
            defer { offset += 8 }
            return Int64(
                bitPattern: bytes[offset..<offset + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        var sessions: [Session] = []
        while bytes.count - offset >= 17, sessions.count <= Sessions.maxPast {
            let start = number()
            let last = number()
            let length = Int(bytes[offset])
            offset += 1
            guard length <= Sessions.maxIDLength, bytes.count - offset >= length else { break }
            serial += 1
            sessions.append(
                Session(start: start, last: last, serial: serial, id: Array(bytes[offset..<offset + length])))
            offset += length
        }
        guard let current = sessions.first else { return }
        let index = slotIndex(of: key, app: app)
        slots[index].start = current.start
        slots[index].last = current.last
        slots[index].serial = current.serial
        slots[index].isAnnounced = bytes[1] == 1
        ids[index] = current.id
        past[index] = Array(sessions.dropFirst())
        slots[index].isStored = true
        slots[index].isChanged = false
    }
}
