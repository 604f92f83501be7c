internal import Model

/// Whose the events of a chunk are: runs of neighbours of one holder, in their order.
///
/// A holder is an app, in `incoming/` an owner. What an older version stored is nobody's: no runs, and the empty name.
struct ChunkHolders: Equatable {
    struct Run: Equatable {
        let holder: String
        var events: Int
        /// Of their lines.
        var bytes: Int
    }

    private(set) var runs: [Run] = []

    init() {}

    init(_ origins: [EventOrigin]) {
        for origin in origins { add(Run(holder: origin.app, events: origin.offsets.count, bytes: origin.bytes)) }
    }

    mutating func add(_ run: Run) {
        guard let last = runs.last, last.holder == run.holder else { return runs.append(run) }
        runs[runs.count - 1].events += run.events
        runs[runs.count - 1].bytes += run.bytes
    }

    var events: Int { runs.reduce(0) { $0 + $1.events } }

    var bytes: Int { runs.reduce(0) { $0 + $1.bytes } }

    /// Whose each of the events at some places is; the empty name where nobody knows.
    func names(of places: Range<Int>) -> [String] {
        let names = runs.flatMap { repeatElement($0.holder, count: $0.events) }
        return names.count < places.upperBound ? Array(repeating: "", count: places.count) : Array(names[places])
    }

    /// What each holder's part of the chunk's cost is; a holder with several runs comes several times.
    func shares(of cost: Int) -> [(holder: String, cost: Int)] {
        let all = bytes
        guard all > 0 else { return [("", cost)] }
        return runs.map { ($0.holder, Int(Double(cost) * (Double($0.bytes) / Double(all)))) }
    }

    /// The places of the events that others than these holders have, and whose those are.
    func without(_ holders: Set<String>) -> (places: [Range<Int>], left: ChunkHolders) {
        var places: [Range<Int>] = []
        var left = ChunkHolders()
        var place = 0
        for run in runs {
            if !holders.contains(run.holder) {
                places.append(place..<place + run.events)
                left.add(run)
            }
            place += run.events
        }
        return (places, left)
    }
}

// As text in the queue's file: no name of a directory or of a user has a slash.
extension ChunkHolders {
    var text: String { runs.map { "\($0.events) \($0.bytes) \($0.holder)" }.joined(separator: "/") }

    /// Reads a stored text; what none of ours says is nobody's.
    init(text: String) {
        for part in text.split(separator: "/") {
            let words = part.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count == 3, let events = Int(words[0]), let bytes = Int(words[1]),
                (1...1 << 32).contains(events), (0...1 << 40).contains(bytes)
            else {
                runs = []
                return
            }
            add(Run(holder: String(words[2]), events: events, bytes: bytes))
        }
    }
}

/// A row of table `holding`.
struct Holding {
    let chunk: Int64
    let priority: Priority
    var cost: Int
    var holders: ChunkHolders
}

extension Holding {
    init(_ row: Statement) {
        chunk = Int64(row.integer(0))
        priority = Priority(rawValue: UInt8(truncatingIfNeeded: row.integer(1))) ?? .normal
        cost = row.integer(2)
        holders = ChunkHolders(text: row.text(3))
    }
}

extension QueueFile {
    /// Whose a chunk's events are; nil where an older version stored it.
    func holding(of chunk: Int64) throws(QueueError) -> Holding? {
        try statement("SELECT chunk, priority, cost, holders FROM holding WHERE chunk = ?").take(chunk)
            .first { Holding($0) }
    }

    /// Whose each of a row's events is; the empty name where nobody knows.
    func holders(of row: DeliveryRow) throws(QueueError) -> [String] {
        let holders = try holding(of: row.chunk)?.holders ?? ChunkHolders()
        return holders.names(of: row.first..<row.first + row.events)
    }

    /// Whose the events of chunks are, from one chunk on, the oldest first.
    func holdings(from chunk: Int64) throws(QueueError) -> Statement {
        try statement("SELECT chunk, priority, cost, holders FROM holding WHERE chunk >= ? ORDER BY chunk").take(chunk)
    }
}

/// What each holder has in the queue, by priority: counted when room is first missing, forgotten when half of it is free.
struct Holdings {
    /// So many holders are told apart, at each priority. Who comes beyond them counts as nobody: names may be many, memory is not.
    private static let most = 10_000

    private var held: [Priority: [String: Int]] = [:]
    /// No chunk before this one has enough of these holders that may go.
    private var passed: [Priority: (holders: Set<String>, before: Int64)] = [:]

    mutating func add(_ holding: Holding) {
        for share in holding.holders.shares(of: holding.cost) {
            let isKnown = held[holding.priority]?[share.holder] != nil
            let isTold = isKnown || held[holding.priority]?.count ?? 0 < Holdings.most
            held[holding.priority, default: [:]][isTold ? share.holder : "", default: 0] += share.cost
        }
    }

    mutating func remove(_ holding: Holding) {
        for share in holding.holders.shares(of: holding.cost) {
            let holder = held[holding.priority]?[share.holder] == nil ? "" : share.holder
            let left = (held[holding.priority]?[holder] ?? 0) - share.cost
            held[holding.priority]?[holder] = left > 0 ? left : nil
        }
    }

    /// Who gives up first at a priority: who holds most, and who holds nearly as much; nobody who holds less than an equal part.
    ///
    /// Those beside the first save work: of level holders each would be first in turn, and shared chunks written as often.
    func givers(_ priority: Priority) -> Set<String> {
        let bytes = held[priority] ?? [:]
        guard let most = bytes.values.max() else { return [] }
        let equal = (bytes.values.reduce(0, +) + bytes.count - 1) / bytes.count
        let least = max(equal, most - most / 8)
        return Set(bytes.lazy.filter { $0.value >= least }.map(\.key))
    }

    /// From which chunk on some of these holders may have enough.
    func start(for holders: Set<String>, _ priority: Priority) -> Int64 {
        guard let passed = passed[priority], holders.isSubset(of: passed.holders) else { return 0 }
        return passed.before
    }

    mutating func pass(_ chunk: Int64, for holders: Set<String>, _ priority: Priority) {
        passed[priority] = (holders, chunk)
    }
}
