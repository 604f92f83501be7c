internal import EventLoops
internal import Model

/// How many events each key had in the present period, for the throttling tags of one container.
struct Throttles {
    /// Most keys of one tag that have counts of their own. Further keys share a count of their app.
    static let limit = 1024

    /// A table for each throttling tag.
    private var tables: [Table]
    /// Whether counts have changed since they were last stored.
    private(set) var isChanged = false

    /// The counts of one tag.
    private struct Table {
        /// Number of the period, counted from 1970 in its own length.
        var period = Int64.min
        /// Events by key.
        var counts: [Key: Int] = [:]
        /// Shares of the keys among holders.
        var holdings = Holdings()

        /// Whether a key gets a count of its own. If there are too many keys, the holder with the most gives
        /// up the one with the fewest events.
        mutating func hasRoom(for key: Key) -> Bool {
            guard counts[key] == nil else { return true }
            let room = holdings.reserve(for: key.holder, of: Throttles.limit)
            if case .givenUp(let giver) = room {
                let own = counts.filter { $0.key.holder == giver && $0.key.hash != nil }
                if let least = own.min(by: { $0.value < $1.value }) {
                    counts[least.key] = nil
                }
            }
            return room != .none
        }
    }

    /// A key, of one holder.
    private struct Key: Hashable {
        /// The holder of the app.
        let holder: String
        /// Hash of the key; nil stands for all keys of the holder without a count of their own.
        var hash: UInt64?
    }

    /// Throttles without counts.
    init(count: Int) { tables = Array(repeating: Table(), count: count) }

    /// Counts an event; returns false if its key has had all events of the period. `crowded` is called if too
    /// many keys leave it no count of its own.
    mutating func admit(
        _ hash: UInt64, of app: String, at now: Timestamp, throttle: Int, events: Int, seconds: Int,
        crowded: () -> Void
    ) -> Bool {
        let period = now.milliseconds / 1000 / Int64(seconds)
        if tables[throttle].period != period {
            tables[throttle] = Table(period: period)
        }
        var key = Key(holder: Holdings.holder(of: app), hash: hash)
        if !tables[throttle].hasRoom(for: key) {
            crowded()
            // If there are as many apps as keys, a new app gets no count at all: these apps share one.
            key = Key(
                holder: tables[throttle].holdings.count(of: key.holder) > 0 ? key.holder : "", hash: nil)
        }
        let count = tables[throttle].counts[key, default: 0]
        guard count < events else { return false }
        tables[throttle].counts[key] = count + 1
        isChanged = true
        return true
    }

    /// The counts, to be stored.
    mutating func takeMemory() -> [UInt8] {
        isChanged = false
        let value = JSONValue.array(
            tables.map { table in
                .array([
                    .integer(Int(table.period)),
                    .object(
                        table.counts.map { key, count in
                            let hash = key.hash.map { String($0, radix: 16) } ?? "rest"
                            return JSONValue.Member("\(hash) \(key.holder)", .integer(count))
                        }),
                ])
            })
        return Array(value.description.utf8)
    }

    /// Restores the counts of an earlier process, if they are of as many tags.
    mutating func restore(_ bytes: [UInt8]) {
        guard case .array(let saved)? = try? JSONValue(parsing: bytes), saved.count == tables.count else {
            return
        }
        // Counts of an earlier version may not be durable yet.
        isChanged = true
        for (throttle, table) in saved.enumerated() {
            guard case .array(let parts) = table, parts.count == 2, let period = parts[0].integer,
                let counts = parts[1].members
            else { continue }
            tables[throttle].period = Int64(period)
            for member in counts.prefix(2 * Throttles.limit) {
                let words = member.key.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
                // Counts of an earlier version have no holder.
                guard words.count == 2, let count = member.value.integer else { continue }
                let key = Key(holder: String(words[1]), hash: UInt64(words[0], radix: 16))
                if key.hash == nil || tables[throttle].hasRoom(for: key) {
                    tables[throttle].counts[key] = count
                }
            }
        }
    }
}

/// The throttles of the containers in force, in their order. They continue if a container of the same id has
/// as many throttling tags.
struct ContainerThrottles {
    /// The throttles of each container.
    private var inForce: [Throttles] = []
    /// Ids of the containers that throttle; nil for one that does not.
    private var ids: [String?] = []
    /// Throttles of containers that were in force before, or of an earlier process, by id.
    private var saved: [String: [UInt8]] = [:]

    /// Puts containers in force, with the throttles that are saved.
    mutating func use(_ containers: [CompiledContainer]) {
        ids = containers.map { $0.throttles > 0 ? $0.document.id : nil }
        inForce = containers.map { container in
            var made = Throttles(count: container.throttles)
            if let bytes = saved[container.document.id] {
                made.restore(bytes)
            }
            return made
        }
    }

    /// Saves the throttles in force for other containers of the same ids.
    mutating func save() {
        for (container, id) in ids.enumerated() {
            if let id {
                saved[id] = inForce[container].takeMemory()
            }
        }
    }

    /// Takes over what an earlier process stored of a container; `use` must follow.
    mutating func restore(_ bytes: [UInt8], of id: String) { saved[id] = bytes }

    /// What has changed since the last call, by id.
    mutating func takeChanged() -> [(id: String, bytes: [UInt8])] {
        var changed: [(id: String, bytes: [UInt8])] = []
        for (container, id) in ids.enumerated() where inForce[container].isChanged {
            if let id {
                changed.append((id, inForce[container].takeMemory()))
            }
        }
        return changed
    }

    /// Counts an event for a tag of a container; see `Throttles.admit`.
    @inline(__always)
    mutating func admit(
        _ hash: UInt64, to container: Int, of app: String, at now: Timestamp, throttle: Int, events: Int,
        seconds: Int, crowded: () -> Void
    ) -> Bool {
        inForce[container].admit(
            hash, of: app, at: now, throttle: throttle, events: events, seconds: seconds, crowded: crowded)
    }
}
