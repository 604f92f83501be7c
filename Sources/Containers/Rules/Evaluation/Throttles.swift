internal import EventLoops
internal import Model

/// How many events each key has had in the present period, for the throttling tags of one container.
struct Throttles {
    /// Keys of one tag that are counted by themselves; those beyond share one count.
    static let limit = 1024

    private var tables: [Table]
    private(set) var isChanged = false

    private struct Table {
        /// The period, counted from 1970 in its own length.
        var period = Int64.min
        var counts: [UInt64: Int] = [:]
    }

    init(count: Int) { tables = Array(repeating: Table(), count: count) }

    /// Counts an event, unless its key has had all that it may have in the period.
    mutating func admit(_ key: UInt64, at now: Timestamp, place: Int, events: Int, seconds: Int) -> Bool {
        let period = now.milliseconds / 1000 / Int64(seconds)
        if tables[place].period != period { tables[place] = Table(period: period) }
        var key = key
        if tables[place].counts[key] == nil, tables[place].counts.count >= Throttles.limit { key = 0 }
        let count = tables[place].counts[key, default: 0]
        guard count < events else { return false }
        tables[place].counts[key] = count + 1
        isChanged = true
        return true
    }

    /// The counts, for the next start.
    mutating func takeMemory() -> [UInt8] {
        isChanged = false
        let value = JSONValue.array(
            tables.map { table in
                .array([
                    .integer(Int(table.period)),
                    .object(
                        table.counts.sorted { $0.key < $1.key }.map { key, count in
                            JSONValue.Member(String(key, radix: 16), .integer(count))
                        }),
                ])
            })
        return Array(value.description.utf8)
    }

    /// Takes up what an earlier process remembered, where it is of as many tags.
    mutating func restore(_ bytes: [UInt8]) {
        guard case .array(let saved)? = try? JSONValue(parsing: bytes), saved.count == tables.count else { return }
        // Those of an earlier version may not be durable yet.
        isChanged = true
        for (place, table) in saved.enumerated() {
            guard case .array(let parts) = table, parts.count == 2, let period = parts[0].integer,
                let counts = parts[1].members
            else { continue }
            tables[place].period = Int64(period)
            for member in counts.prefix(Throttles.limit) {
                guard let key = UInt64(member.key, radix: 16), let count = member.value.integer else { continue }
                tables[place].counts[key] = count
            }
        }
    }
}
