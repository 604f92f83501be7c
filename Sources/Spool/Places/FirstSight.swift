internal import EventLoops
internal import Model

/// Knows which patterns were seen before, and decides whether a file that existed when it was first covered
/// is skipped: by `since`, or because it is an old archive.
///
/// A value without I/O. The time at which a pattern was first seen, and whether all files of that time were
/// examined, are stored with the commits. Otherwise a restart would skip lines that were written while the
/// agent was stopped.
///
/// What counts is the file, not the text of its pattern: a file that a pattern of an earlier run covered was
/// seen then, whatever its app. Otherwise a renamed app, or `*.log` that is written as `{a,b}.log`, would
/// lose what was written while the agent was stopped.
struct FirstSight {
    /// The first use of a pattern.
    private struct Sight: Equatable {
        /// Time at which the pattern was used for the first time.
        let began: Timestamp
        /// Whether all files that existed were examined. Files that are found later are new.
        var isOver = false
    }

    /// A pattern of an earlier run that may cover files of the place.
    private struct EarlierSight {
        /// Files of the pattern, below the root of the file system.
        let files: ReadPlace
        let sight: Sight
    }

    /// What was passed over.
    struct Passed: Equatable {
        var files = 0
        var bytes: ByteCount = 0
        var archives = 0
        var archiveBytes: ByteCount = 0
    }

    private let place: ReadPlace
    private let since: ReadStart
    /// Whether files of the place were read by a version that did not store patterns. Then no content is
    /// skipped.
    private let isKnown: Bool
    /// Key of each pattern in the queue's memory.
    private let keys: [PathPattern: String]
    private var sights: [PathPattern: Sight] = [:]
    /// Other patterns in the queue's memory; empty once the place's own patterns suffice.
    private var earlier: [EarlierSight]
    /// Sights that the next commit must store, by their key.
    private var changes: [String: [UInt8]] = [:]
    /// Whether all files that existed at the first use of the patterns were examined.
    private(set) var isOver = false
    /// What was passed over since the last report.
    private var passed = Passed()

    /// Tolerance for birth times: the kernel's clock for file times is coarse and may lag by a tick.
    private static let tick = Duration.milliseconds(20)

    /// - Parameters:
    ///   - hasRead: whether the queue has checkpoints of files of the place.
    ///   - memory: the queue's memory.
    init(_ place: ReadPlace, _ since: ReadStart, hasRead: Bool = false, memory: [String: [UInt8]]) {
        self.place = place
        self.since = since
        let keys = Dictionary(
            uniqueKeysWithValues: Set(place.patterns).map { ($0, FirstSight.key(of: $0, in: place)) })
        self.keys = keys
        isKnown = hasRead && !memory.keys.contains { $0.hasPrefix(FirstSight.prefix) }
        for (pattern, key) in keys { sights[pattern] = memory[key].flatMap { FirstSight.decoded($0) } }
        let isComplete = keys.keys.allSatisfy { [sights] in sights[$0]?.isOver == true }
        earlier = isComplete ? [] : FirstSight.earlier(in: memory, besides: Set(keys.values), below: place)
    }

    /// Begins a look at the place, and notes the time for patterns that are new.
    mutating func begin(at now: Timestamp) {
        for pattern in keys.keys where sights[pattern] == nil { set(Sight(began: now), of: pattern) }
        isOver = sights.values.allSatisfy(\.isOver)
    }

    /// Ends a look: all directories of the place were listed, so all files that existed are known.
    ///
    /// - Returns: what was passed over, if anything was.
    mutating func end() -> Passed? {
        for (pattern, sight) in sights where !sight.isOver {
            set(Sight(began: sight.began, isOver: true), of: pattern)
        }
        isOver = true
        earlier = []
        defer { passed = Passed() }
        return passed == Passed() ? nil : passed
    }

    /// Whether the content that a file has when it is first seen is passed over, as `since` says.
    ///
    /// - Parameters:
    ///   - path: its directory, below the root of the place.
    ///   - born: time at which the file was created; nil if its file system does not store it.
    ///   - modified: time at which its content changed last.
    func passesOver(_ name: FileName, in path: FileName, born: Timestamp?, modified: Timestamp) -> Bool {
        passesOver(name, in: path, place.patterns(of: path, name), born: born, modified: modified)
    }

    /// Whether a compressed file is left alone: it existed when it was first covered, and rotation made it,
    /// or, if a pattern names it, `since` says so.
    func leavesAlone(_ archive: FileName, in path: FileName, born: Timestamp?, modified: Timestamp) -> Bool {
        let named = place.named(path, archive)
        let ofRotated = archive.unpacked.map { place.patterns(of: path, $0.name) } ?? []
        guard named.isEmpty else {
            return passesOver(archive, in: path, named + ofRotated, born: born, modified: modified)
        }
        return firstSeen(archive, in: path, ofRotated, born: born) != nil
    }

    private func passesOver(
        _ name: FileName, in path: FileName, _ patterns: [PathPattern], born: Timestamp?, modified: Timestamp
    ) -> Bool {
        guard since != .beginning, !isKnown,
            let began = firstSeen(name, in: path, patterns, born: born)
        else { return false }
        switch since {
        case .beginning: return false
        case .now: return true
        case .age(let age): return modified < began - age
        }
    }

    /// Time at which a file was first covered by a pattern; nil for a file that was created later.
    ///
    /// - Parameter patterns: patterns of the place that fit the file.
    private func firstSeen(
        _ name: FileName, in path: FileName, _ patterns: [PathPattern], born: Timestamp?
    ) -> Timestamp? {
        let fitting = patterns.compactMap { sights[$0] } + earlierSights(of: name, in: path)
        guard !fitting.contains(where: \.isOver), let began = fitting.map(\.began).min() else { return nil }
        if let born, born > began - FirstSight.tick { return nil }
        return began
    }

    /// Sights of earlier runs whose pattern covered a file.
    private func earlierSights(of name: FileName, in path: FileName) -> [Sight] {
        guard !earlier.isEmpty else { return [] }
        let root = Array(place.root.utf8.dropFirst())
        let whole = FileName(root + [UInt8(ascii: "/")] + path.bytes)
        return earlier.compactMap { earlier in
            let files = earlier.files
            return files.fits(whole, name) || files.archive(whole, name) != nil ? earlier.sight : nil
        }
    }

    /// Counts a file whose content was passed over, as `since` says.
    mutating func passedOver(_ bytes: Int64) {
        passed.files += 1
        passed.bytes += ByteCount(bytes)
    }

    /// Counts an archive that was left alone.
    mutating func leftAlone(_ bytes: Int64) {
        passed.archives += 1
        passed.archiveBytes += ByteCount(bytes)
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

    /// Beginning of the keys in the queue's memory.
    private static let prefix = "seen/"
    /// Separates the pattern in a key from those of files that were left out, which have other sights.
    private static let separator = "//"

    /// The key of a pattern in the queue's memory: its app, its whole path, and what the app leaves out.
    private static func key(of pattern: PathPattern, in place: ReadPlace) -> String {
        let excluded = Set(place.excluded.map(\.text)).sorted()
        let texts = [place.whole(pattern).text] + excluded
        return "\(prefix)\(place.app)/\(texts.joined(separator: separator))"
    }

    /// The sights in the queue's memory whose pattern may cover a file below the root of a place.
    private static func earlier(
        in memory: [String: [UInt8]], besides own: Set<String>, below place: ReadPlace
    ) -> [EarlierSight] {
        let root = FileName(String(place.root.dropFirst()))
        return memory.compactMap { key, bytes in
            guard key.hasPrefix(prefix), !own.contains(key), let sight = decoded(bytes),
                let files = files(ofKey: key), files.mayHold(below: root)
            else { return nil }
            return EarlierSight(files: files, sight: sight)
        }
    }

    /// The files of the pattern in a key; nil for a malformed key.
    private static func files(ofKey key: String) -> ReadPlace? {
        guard let slash = key.dropFirst(prefix.count).firstIndex(of: "/") else { return nil }
        let names = key[slash...].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        // An empty name is between the two slashes of the separator.
        let paths = names.split(separator: "").map { $0.joined(separator: "/") }
        guard let pattern = paths.first else { return nil }
        return ReadPlace(
            app: "", root: "/", patterns: [PathPattern(path: pattern)],
            excluded: paths.dropFirst().map { PathPattern(path: $0, isForHidden: true) })
    }

    /// Decodes a stored entry; malformed bytes count as a pattern that was not seen.
    private static func decoded(_ bytes: [UInt8]) -> Sight? {
        guard bytes.count == 9, bytes[8] <= 1 else { return nil }
        let began = bytes[..<8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        return Sight(began: Timestamp(nanoseconds: Int64(bitPattern: began)), isOver: bytes[8] == 1)
    }
}
