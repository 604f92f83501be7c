internal import Model

/// Which session an event belongs to: pure, bounded, and durable by what `changes` returns.
///
/// A producer is an app, with the process where the event says one, or else the append file it comes from. A session
/// lasts from an event to the last one before a silence of `timeout` at whose end the producer was gone. Time is the
/// events' own, but never later than now: so a backlog is cut into the sessions in which it was written.
///
/// At most 1,024 producers are remembered, the least recent makes room (of the same app, if that has a quarter of them,
/// so that no app can push out the others'); of each its last 32 sessions, and none that ended more than a day ago.
struct Sessions: ~Copyable {
    static let maxProducers = 1024
    static let maxPast = 32
    static let maxIDLength = 64
    private static let day: Int64 = 86_400_000_000_000

    /// What is known of a producer. Plain, in one block of memory: each event looks at one.
    struct Slot {
        /// When its session began and was last heard of, in nanoseconds since 1970.
        var start: Int64 = 0
        var last: Int64 = 0
        /// Tells sessions apart within this process; 0 while there is none.
        var serial = 0
        var app = 0
        var isUsed = false
        /// Whether the session's start has been written as an event.
        var isAnnounced = true
        var isChanged = false
        /// Whether the queue has something of it.
        var isStored = false
    }

    /// A session: the present one of a producer, or one of its last.
    struct Session {
        var start: Int64
        var last: Int64
        var serial: Int
        var id: [UInt8]
    }

    private let slots: UnsafeMutablePointer<Slot>
    private var ids: [[UInt8]]
    private var past: [[Session]]
    private var keys: [String]
    private var places: [String: Int] = [:]
    private var apps: [String: Int] = [:]
    private var serial = 0
    private var removed: Set<String> = []
    /// Grows when a producer makes room for another: places that somebody noted may be another's then.
    private(set) var evictions = 0

    init() {
        slots = .allocate(capacity: Sessions.maxProducers)
        slots.initialize(repeating: Slot(), count: Sessions.maxProducers)
        ids = Array(repeating: [], count: Sessions.maxProducers)
        past = Array(repeating: [], count: Sessions.maxProducers)
        keys = Array(repeating: "", count: Sessions.maxProducers)
    }

    deinit { slots.deallocate() }

    /// The time between two points; what 64 bits cannot say becomes the nearest that they can. An app may say any year.
    @inline(__always)
    private static func gap(from earlier: Int64, to later: Int64) -> Int64 {
        let (gap, overflow) = later.subtractingReportingOverflow(earlier)
        return overflow ? (later < earlier ? .min : .max) : gap
    }

    // MARK: Producers

    /// The key of a producer: its name in memory.
    static func key(app: String, process: UnsafeBufferPointer<UInt8>) -> String {
        "session/\(app)/process/\(String(decoding: process.prefix(maxIDLength), as: UTF8.self))"
    }
    static func key(app: String, file: [UInt8]) -> String {
        "session/\(app)/file/\(Hexadecimal.text(file.prefix(64)))"
    }
    static func key(app: String) -> String { "session/\(app)" }

    func known(_ key: String) -> Int? { places[key] }

    /// The place of a producer; a new one gets one, and somebody else's if there is none left.
    mutating func place(of key: String, app: String) -> Int {
        if let known = places[key] { return known }
        let appIndex = apps[app] ?? apps.count
        apps[app] = appIndex
        let all = 0..<Sessions.maxProducers
        let slots = slots
        var place = all.first { !slots[$0].isUsed } ?? 0
        if slots[place].isUsed {
            let own = all.filter { slots[$0].app == appIndex }
            let rivals = own.count >= Sessions.maxProducers / 4 ? own : Array(all)
            place = rivals.min { slots[$0].last < slots[$1].last } ?? 0
            places[keys[place]] = nil
            removed.insert(keys[place])
            evictions += 1
        }
        removed.remove(key)
        // Until it has a session it is the first to make room.
        slots[place] = Slot(last: .min, app: appIndex, isUsed: true)
        ids[place] = []
        past[place] = []
        keys[place] = key
        places[key] = place
        return place
    }

    @inline(__always) func slot(_ place: Int) -> Slot { slots[place] }
    func current(_ place: Int) -> Session {
        Session(start: slots[place].start, last: slots[place].last, serial: slots[place].serial, id: ids[place])
    }

    // MARK: Automatic

    /// Whether an event simply goes on with its producer's session; notes that it was heard of.
    @inline(__always)
    mutating func goesOn(_ place: Int, at time: Int64, timeout: Int64, isGone: Bool) -> Bool {
        let slot = slots + place
        guard slot.pointee.serial != 0, time >= slot.pointee.last else { return false }
        guard !isGone || Sessions.gap(from: slot.pointee.last, to: time) < timeout else { return false }
        slot.pointee.last = time
        slot.pointee.isChanged = true
        return true
    }

    /// The session of an event that does not simply go on: it is the producer's first, begins a new session, or is late.
    ///
    /// - Parameters:
    ///   - newID: the id of the session if one begins.
    /// - Returns: nil when the event belongs to no session that is remembered.
    mutating func resolve(
        _ place: Int, at time: Int64, now: Int64, timeout: Int64, isGone: Bool, newID: [UInt8]
    ) -> Session? {
        if slots[place].serial != 0, time >= slots[place].start {
            if time < slots[place].last || !isGone || Sessions.gap(from: slots[place].last, to: time) < timeout {
                slots[place].last = max(slots[place].last, time)
                slots[place].isChanged = true
                return current(place)
            }
        }
        guard Sessions.gap(from: time, to: now) <= Sessions.day else { return nil }
        // One that begins after now is of a clock that was ahead: it is over.
        if slots[place].serial != 0, time < slots[place].start,
            Sessions.gap(from: now, to: slots[place].start) < timeout
        {
            return late(place, time, timeout)
        }
        begin(place, at: time, id: newID, now: now)
        slots[place].isAnnounced = false
        return current(place)
    }

    /// The session of an event from before the present one.
    private mutating func late(_ place: Int, _ time: Int64, _ timeout: Int64) -> Session? {
        let earlier = past[place].last { $0.start <= time }
        let isJustBefore = Sessions.gap(from: time, to: slots[place].start) < timeout
        if isJustBefore, earlier.map({ Sessions.gap(from: $0.last, to: time) >= timeout }) ?? true {
            // Threads that write at the same time do not write in order.
            slots[place].start = time
            slots[place].isChanged = true
            return current(place)
        }
        return earlier
    }

    // MARK: Manual

    mutating func begin(_ place: Int, at time: Int64, id: [UInt8], now: Int64) {
        if slots[place].serial != 0 {
            past[place].append(current(place))
            past[place].removeAll { Sessions.gap(from: $0.last, to: now) > Sessions.day }
            if past[place].count > Sessions.maxPast { past[place].removeFirst() }
        }
        serial += 1
        slots[place].serial = serial
        slots[place].start = time
        slots[place].last = time
        slots[place].isAnnounced = true
        slots[place].isChanged = true
        ids[place] = id
    }

    /// The newest of the sessions of two producers that began at or before a time.
    func newest(_ first: Int, _ second: Int, at time: Int64) -> Session? {
        var found: Session?
        for place in first == second ? [first] : [first, second] where slots[place].serial != 0 {
            guard let candidate = (past[place] + [current(place)]).last(where: { $0.start <= time }) else { continue }
            if candidate.start > found?.start ?? .min { found = candidate }
        }
        return found
    }

    /// Notes that a session's start has been written.
    mutating func announce(_ place: Int) {
        slots[place].isAnnounced = true
        slots[place].isChanged = true
    }

    // MARK: Memory

    /// What has changed since the last call, by key; nil for producers that made room, and those of apps whose sessions are hidden.
    mutating func changes(isHidden: (String) -> Bool) -> [String: [UInt8]?] {
        var changes: [String: [UInt8]?] = [:]
        for key in removed { changes.updateValue(nil, forKey: key) }
        removed.removeAll()
        let hidden = Set(apps.filter { isHidden($0.key) }.values)
        for place in 0..<Sessions.maxProducers where !hidden.isEmpty && hidden.contains(slots[place].app) {
            if slots[place].isStored { changes.updateValue(nil, forKey: keys[place]) }
            (slots[place].isStored, slots[place].isChanged) = (false, false)
        }
        for place in 0..<Sessions.maxProducers where slots[place].isChanged {
            (slots[place].isStored, slots[place].isChanged) = (true, false)
            changes.updateValue(encoded(place), forKey: keys[place])
        }
        return changes
    }

    private func encoded(_ place: Int) -> [UInt8] {
        var bytes: [UInt8] = [1, slots[place].isAnnounced ? 1 : 0]
        func add(_ start: Int64, _ last: Int64, _ id: [UInt8]) {
            for value in [start, last] { withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) } }
            bytes.append(UInt8(clamping: id.count))
            bytes += id
        }
        add(slots[place].start, slots[place].last, ids[place])
        for session in past[place] { add(session.start, session.last, session.id) }
        return bytes
    }

    /// Takes up what an earlier process remembered; what cannot be read is left out.
    mutating func restore(_ key: String, app: String, _ bytes: [UInt8]) {
        guard bytes.count > 2, bytes[0] == 1 else { return }
        var index = 2
        func number() -> Int64 {
            defer { index += 8 }
            return Int64(bitPattern: bytes[index..<index + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        var sessions: [Session] = []
        while bytes.count - index >= 17, sessions.count <= Sessions.maxPast {
            let start = number()
            let last = number()
            let length = Int(bytes[index])
            index += 1
            guard length <= Sessions.maxIDLength, bytes.count - index >= length else { break }
            serial += 1
            sessions.append(Session(start: start, last: last, serial: serial, id: Array(bytes[index..<index + length])))
            index += length
        }
        guard let current = sessions.first else { return }
        let place = place(of: key, app: app)
        slots[place].start = current.start
        slots[place].last = current.last
        slots[place].serial = current.serial
        slots[place].isAnnounced = bytes[1] == 1
        ids[place] = current.id
        past[place] = Array(sessions.dropFirst())
        (slots[place].isStored, slots[place].isChanged) = (true, false)
    }
}
