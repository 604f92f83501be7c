internal import EventLoops
internal import Model

/// Knows which patterns of a place were seen before, and decides whether a file that existed when its pattern
/// was seen for the first time is skipped (`since`).
///
/// A value without I/O. The time at which a pattern was first seen, and whether all files of that time were
/// examined, are stored with the commits. Otherwise a restart would skip lines that were written while the
/// agent was stopped.
struct FirstSight {
    /// The first use of a pattern.
    private struct Sight: Equatable {
        /// Time at which the pattern was used for the first time.
        let began: Timestamp
        /// Whether all files that existed were examined. Files that are found later are new.
        var isOver = false
    }

    private let since: ReadStart
    /// Whether files of the place were read by a version that did not store patterns. Then no content is
    /// skipped.
    private let isKnown: Bool
    /// Key of each pattern in the queue's memory.
    private let keys: [PathPattern: String]
    private var sights: [PathPattern: Sight] = [:]
    /// Sights that the next commit must store, by their key.
    private var changes: [String: [UInt8]] = [:]
    /// Whether all files that existed at the first use of the patterns were examined.
    private(set) var isOver = false
    /// Files and bytes that were passed over since the last report.
    private var passed = (files: 0, bytes: ByteCount(0))

    /// Tolerance for birth times: the kernel's clock for file times is coarse and may lag by a tick.
    private static let tick = Duration.milliseconds(20)

    /// - Parameters:
    ///   - hasRead: whether the queue has checkpoints of files of the place.
    ///   - memory: the queue's memory.
    init(_ place: ReadPlace, _ since: ReadStart, hasRead: Bool = false, memory: [String: [UInt8]]) {
        self.since = since
        let patterns = Set(place.patterns)
        let keys = Dictionary(
            uniqueKeysWithValues: patterns.map { ($0, "seen/\(place.app)/\(place.whole($0).text)") })
        self.keys = keys
        isKnown = hasRead && keys.values.allSatisfy { memory[$0] == nil }
        for (pattern, key) in keys { sights[pattern] = memory[key].flatMap { FirstSight.decoded($0) } }
    }

    /// Begins a look at the place, and notes the time for patterns that are new.
    mutating func begin(at now: Timestamp) {
        for pattern in keys.keys where sights[pattern] == nil { set(Sight(began: now), of: pattern) }
        isOver = sights.values.allSatisfy(\.isOver)
    }

    /// Ends a look: all directories of the place were listed, so all files that existed are known.
    ///
    /// - Returns: what was passed over, if anything was.
    mutating func end() -> (files: Int, bytes: ByteCount)? {
        for (pattern, sight) in sights where !sight.isOver {
            set(Sight(began: sight.began, isOver: true), of: pattern)
        }
        isOver = true
        defer { passed = (0, 0) }
        return passed.files == 0 ? nil : passed
    }

    /// Whether the content that a file has when it is first seen is passed over, as `since` says.
    ///
    /// - Parameters:
    ///   - patterns: patterns of the place that match the file.
    ///   - born: time at which the file was created; nil if its file system does not store it.
    ///   - modified: time at which its content changed last.
    func passesOver(_ patterns: [PathPattern], born: Timestamp?, modified: Timestamp) -> Bool {
        guard since != .beginning, !isKnown, let began = firstSeen(patterns, born: born) else { return false }
        switch since {
        case .beginning: return false
        case .now: return true
        case .age(let age): return modified < began - age
        }
    }

    /// Whether a file existed when its patterns were used for the first time, as far as is known.
    func wasThere(_ patterns: [PathPattern], born: Timestamp?) -> Bool {
        firstSeen(patterns, born: born) != nil
    }

    /// Time at which the patterns of a file were used for the first time; nil for a file that was created
    /// later.
    private func firstSeen(_ patterns: [PathPattern], born: Timestamp?) -> Timestamp? {
        let fitting = patterns.compactMap { sights[$0] }
        guard !fitting.contains(where: \.isOver), let began = fitting.map(\.began).min() else { return nil }
        if let born, born > began - FirstSight.tick { return nil }
        return began
    }

    mutating func passedOver(_ bytes: Int64) {
        passed.files += 1
        passed.bytes += ByteCount(bytes)
    }

    var hasChanges: Bool { !changes.isEmpty }

    /// What must be durable with the next commit.
    mutating func takeChanges() -> [String: [UInt8]] {
        defer { changes = [:] }
        return changes
    }

    private mutating func set(_ sight: Sight, of pattern: PathPattern) {
        sights[pattern] = sight
        guard let key = keys[pattern] else { return }
        let began = UInt64(bitPattern: sight.began.nanoseconds)
        changes[key] = (0..<8).map { UInt8(truncatingIfNeeded: began >> (8 * $0)) } + [sight.isOver ? 1 : 0]
    }

    /// Decodes a stored entry; malformed bytes count as a pattern that was not seen.
    private static func decoded(_ bytes: [UInt8]) -> Sight? {
        guard bytes.count == 9, bytes[8] <= 1 else { return nil }
        let began = bytes[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Sight(began: Timestamp(nanoseconds: Int64(bitPattern: began)), isOver: bytes[8] == 1)
    }
}
