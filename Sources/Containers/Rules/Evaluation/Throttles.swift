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
            let room = holdings.take(for: key.holder, of: Throttles.limit)
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
        _ hash: UInt64, of app: String, at now: Timestamp, place: Int, events: Int, seconds: Int,
        crowded: () -> Void
    ) -> Bool {
        let period = now.milliseconds / 1000 / Int64(seconds)
        if tables[place].period != period {
            tables[place] = Table(period: period)
        }
        var key = Key(holder: Holdings.holder(of: app), hash: hash)
        if !tables[place].hasRoom(for: key) {
            crowded()
            // If there are as many apps as keys, a new app gets no count at all: these apps share one.
            key = Key(holder: tables[place].holdings.count(of: key.holder) > 0 ? key.holder : "", hash: nil)
        }
        let count = tables[place].counts[key, default: 0]
        guard count < events else { return false }
        tables[place].counts[key] = count + 1
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
        for (place, table) in saved.enumerated() {
            guard case .array(let parts) = table, parts.count == 2, let period = parts[0].integer,
                let counts = parts[1].members
            else { continue }
            tables[place].period = Int64(period)
            for member in counts.prefix(2 * Throttles.limit) {
                let words = member.key.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
                // Counts of an earlier version have no holder.
                guard words.count == 2, let count = member.value.integer else { continue }
                let key = Key(holder: String(words[1]), hash: UInt64(words[0], radix: 16))
                if key.hash == nil || tables[place].hasRoom(for: key) {
                    tables[place].counts[key] = count
                }
            }
        }
    }
}
