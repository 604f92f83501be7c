internal import Model

/// Who the events of a chunk belong to, as runs of neighbouring events of one holder.
///
/// A holder is an app, or the owner for files in `incoming/`. Chunks that older versions stored have no
/// runs; their events belong to the empty name. Eviction uses this to take events from the holder that
/// fills the queue (`Transaction+Evicting`).
struct ChunkHolders: Equatable {
    /// Neighbouring events of one holder.
    struct Run: Equatable {
        /// App or owner; empty if unknown.
        let holder: String
        var events: Int
        /// Uncompressed size of their lines, in bytes.
        var bytes: Int
    }

    /// In the order of the events; two neighbouring runs never have the same holder.
    private(set) var runs: [Run] = []

    init() {}

    /// The holders of a new chunk, from where its events were read.
    init(_ origins: [EventOrigin]) {
        for origin in origins {
            add(Run(holder: origin.app, events: origin.offsets.count, bytes: origin.bytes))
        }
    }

    /// Appends a run, and joins it with the last one if both have the same holder.
    mutating func add(_ run: Run) {
        guard let last = runs.last, last.holder == run.holder else { return runs.append(run) }
        runs[runs.count - 1].events += run.events
        runs[runs.count - 1].bytes += run.bytes
    }

    /// Number of events in all runs.
    var events: Int { runs.reduce(0) { $0 + $1.events } }

    /// Uncompressed size of all runs, in bytes.
    var bytes: Int { runs.reduce(0) { $0 + $1.bytes } }

    /// The holder of each event in a range; the empty name for all of them if the runs do not cover the
    /// range.
    func names(of range: Range<Int>) -> [String] {
        let names = runs.flatMap { repeatElement($0.holder, count: $0.events) }
        return names.count < range.upperBound
            ? Array(repeating: "", count: range.count) : Array(names[range])
    }

    /// The holders of some events; only the empty name if one is unknown, as in `names(of:)`: if the two
    /// disagreed, a search for withheld events would find the same chunk for ever.
    func apps(of range: Range<Int>) -> Set<String> {
        var apps: Set<String> = []
        var end = 0
        for run in runs {
            let begin = end
            end += run.events
            if begin < range.upperBound, end > range.lowerBound {
                apps.insert(run.holder)
            }
        }
        return end < range.upperBound ? [""] : apps
    }

    /// Splits the cost of the chunk among its holders in proportion to their bytes. A holder with
    /// several runs occurs several times.
    func shares(of cost: Int) -> [(holder: String, cost: Int)] {
        let all = bytes
        guard all > 0 else { return [("", cost)] }
        return runs.map { ($0.holder, Int(Double(cost) * (Double($0.bytes) / Double(all)))) }
    }

    /// The events that remain once these holders' events are removed: their ranges in the chunk, and
    /// who they belong to.
    func without(_ holders: Set<String>) -> (ranges: [Range<Int>], left: ChunkHolders) {
        var ranges: [Range<Int>] = []
        var left = ChunkHolders()
        var offset = 0
        for run in runs {
            if !holders.contains(run.holder) {
                ranges.append(offset..<offset + run.events)
                left.add(run)
            }
            offset += run.events
        }
        return (ranges, left)
    }
}

// The runs as text for column `holding.holders`, such as `12 3400 shop/3 900 web`. Read and written by bytes:
// the blank before a name that begins with a combining mark is not a character of its own.
extension ChunkHolders {
    private static var slash: UInt8 { UInt8(ascii: "/") }
    /// Stands for a slash in a name, which is possible for names from the configuration. No name has control
    /// characters.
    private static var slashInName: UInt8 { 0x01 }

    /// Number of events, bytes and holder of each run.
    var text: String {
        runs.map { "\($0.events) \($0.bytes) \(ChunkHolders.written($0.holder))" }.joined(separator: "/")
    }

    /// Reads a stored text. A text that this version would not write gives no runs, so that a damaged
    /// row costs fairness of eviction and no events.
    init(text: String) {
        for part in text.utf8.split(separator: ChunkHolders.slash) {
            let words = part.split(
                separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
            guard words.count == 3, let events = Int(Substring(words[0])),
                let bytes = Int(Substring(words[1])),
                (1...1 << 32).contains(events), (0...1 << 40).contains(bytes)
            else {
                runs = []
                return
            }
            add(Run(holder: ChunkHolders.read(words[2]), events: events, bytes: bytes))
        }
    }

    /// A name as it is stored.
    private static func written(_ name: String) -> String {
        guard name.utf8.contains(slash) else { return name }
        return String(decoding: name.utf8.map { $0 == slash ? slashInName : $0 }, as: UTF8.self)
    }

    /// The name that was stored.
    private static func read(_ stored: Substring.UTF8View) -> String {
        String(decoding: stored.map { $0 == slashInName ? slash : $0 }, as: UTF8.self)
    }
}

/// Bytes that each holder has in the queue, by priority.
///
/// Counted when room is missing for the first time and dropped when half of the queue is free again
/// (`reconsiderRefusal`): an agent whose queue never fills pays nothing for it.
struct Holdings {
    /// Number of holders that are counted separately at each priority; the others share the empty name. App
    /// names come from users of the spool, who could otherwise fill the memory with them.
    private static let most = 10_000

    /// Bytes by priority and holder.
    private var bytes: [Priority: [String: Int]] = [:]
    /// Chunk before which the search for these holders' events found nothing that may be evicted, so
    /// that the next search does not start at the oldest chunk again.
    private var passed: [Priority: (holders: Set<String>, before: Int64)] = [:]

    /// Counts a stored chunk.
    mutating func add(_ holding: Holding) {
        for share in holding.holders.shares(of: holding.cost) {
            let isKnown = bytes[holding.priority]?[share.holder] != nil
            let isNamed = isKnown || bytes[holding.priority]?.count ?? 0 < Holdings.most
            bytes[holding.priority, default: [:]][isNamed ? share.holder : "", default: 0] += share.cost
        }
    }

    /// Subtracts a chunk that has left the queue or is being replaced by a smaller one.
    mutating func remove(_ holding: Holding) {
        for share in holding.holders.shares(of: holding.cost) {
            let holder = bytes[holding.priority]?[share.holder] == nil ? "" : share.holder
            let left = (bytes[holding.priority]?[holder] ?? 0) - share.cost
            bytes[holding.priority]?[holder] = left > 0 ? left : nil
        }
    }

    /// The holders that give up events first at a priority: the largest one, and those with at least
    /// seven eighths of its bytes. A holder below an equal share never gives up anything.
    ///
    /// Without the second group, holders of nearly equal size would become the largest in turn, and a
    /// chunk that they share would be rewritten once for each of them.
    func givers(_ priority: Priority) -> Set<String> {
        let bytes = bytes[priority] ?? [:]
        guard let most = bytes.values.max() else { return [] }
        let equal = (bytes.values.reduce(0, +) + bytes.count - 1) / bytes.count
        let least = max(equal, most - most / 8)
        return Set(bytes.lazy.filter { $0.value >= least }.map(\.key))
    }

    /// First chunk that may hold enough events of these holders; 0 if no search has passed any.
    func start(for holders: Set<String>, _ priority: Priority) -> Int64 {
        guard let passed = passed[priority], holders.isSubset(of: passed.holders) else { return 0 }
        return passed.before
    }

    /// Records that no chunk before this one has enough events of these holders that may be evicted.
    mutating func pass(_ chunk: Int64, for holders: Set<String>, _ priority: Priority) {
        passed[priority] = (holders, chunk)
    }
}
