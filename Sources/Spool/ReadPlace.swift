internal import Model

/// Files that are read in place: never claimed, renamed, created, locked or removed.
public struct ReadPlace: Sendable, Hashable {
    /// Whose lines they are.
    public let app: String
    /// The directory above the first part with a `*`: an absolute path.
    public let root: String
    /// The parts below it, of each pattern; a `*` fits any run of bytes within a part, but no full stop at its beginning.
    public private(set) var patterns: [[String]]

    /// The places of an app's patterns, one for each directory.
    ///
    /// - Returns: nil for a pattern that is no absolute path of a file.
    public static func of(app: String, _ patterns: [String]) -> [ReadPlace]? {
        var places: [ReadPlace] = []
        for pattern in patterns {
            let parts = pattern.split(separator: "/").map { String($0) }
            guard pattern.hasPrefix("/"), !pattern.hasSuffix("/"), !parts.isEmpty, !parts.contains("."),
                !parts.contains("..")
            else { return nil }
            let first = min(parts.firstIndex { $0.contains("*") } ?? parts.count - 1, parts.count - 1)
            let root = "/" + parts[..<first].joined(separator: "/")
            let below = Array(parts[first...])
            if let known = places.firstIndex(where: { $0.root == root }) {
                places[known].patterns.append(below)
            } else {
                places.append(ReadPlace(app: app, root: root, patterns: [below]))
            }
        }
        return places
    }

    /// Whether a file of the one may be a file of the other.
    public func meets(_ other: ReadPlace) -> Bool {
        let (mine, theirs) = (whole, other.whole)
        return mine.contains { mine in
            theirs.contains { theirs in
                mine.count == theirs.count
                    && zip(mine, theirs).allSatisfy {
                        ReadPlace.fits(Array($0.utf8), Array($1.utf8)) || ReadPlace.fits(Array($1.utf8), Array($0.utf8))
                    }
            }
        }
    }

    /// Whether a file of it may be in that directory, or below it.
    public func reaches(into directory: String) -> Bool {
        let parts = directory.split(separator: "/").map { String($0) }
        return whole.contains { pattern in
            pattern.count > parts.count
                && zip(pattern, parts).allSatisfy { ReadPlace.fits(Array($0.utf8), Array($1.utf8)) }
        }
    }

    /// Whether a path is that of one of its files, before or after rotation.
    ///
    /// - Parameter root: the place's own, or where that leads.
    public func holds(_ path: String, root: String) -> Bool {
        let parts = ReadPlace.part(of: path, below: root)?.split(separator: "/") ?? []
        return parts.last.map { fits(FileName(parts.dropLast().joined(separator: "/")), FileName(String($0))) } ?? false
    }

    /// What a path has below a directory; nil where it is elsewhere.
    static func part(of path: String, below directory: String) -> String? {
        guard path.hasPrefix(directory + "/") else { return nil }
        return String(decoding: path.utf8.dropFirst(directory.utf8.count + 1), as: UTF8.self)
    }

    private var whole: [[String]] { patterns.map { root.split(separator: "/").map { String($0) } + $0 } }

    /// Whether a directory below the root may hold a file.
    func mayHold(below path: FileName) -> Bool {
        let parts = path.bytes.split(separator: UInt8(ascii: "/"))
        return patterns.contains { pattern in
            parts.count < pattern.count && zip(pattern, parts).allSatisfy { ReadPlace.fits(Array($0.utf8), Array($1)) }
        }
    }

    /// Whether it is a file of the place: by its name, or by the one that it had before rotation.
    func fits(_ path: FileName, _ name: FileName) -> Bool {
        guard !name.isHidden, !name.isUnfinished, !ReadPlace.packed.contains(where: { name.hasSuffix($0) }) else {
            return false
        }
        let parts = path.bytes.split(separator: UInt8(ascii: "/"))
        return patterns.contains { pattern in
            guard parts.count == pattern.count - 1, let last = pattern.last.map({ Array($0.utf8) }) else {
                return false
            }
            return zip(pattern, parts).allSatisfy { ReadPlace.fits(Array($0.utf8), Array($1)) }
                && (ReadPlace.fits(last, name.bytes) || ReadPlace.fits(last, name.anyStem.bytes))
        }
    }

    /// Files that hold no lines as they are.
    private static let packed = [".gz", ".zst", ".xz", ".bz2", ".swp", "~"]

    /// Whether a name fits a part of a pattern.
    static func fits(_ pattern: [UInt8], _ name: [UInt8]) -> Bool {
        if name.first == UInt8(ascii: "."), pattern.first == UInt8(ascii: "*") { return false }
        return name.fits(pattern)
    }
}

extension SpoolReader {
    /// What a name says about the file; where files are only read all that fit are append files.
    func kind(of name: FileName, in directory: SpoolDirectory) -> FileKind {
        guard let place = options.place else { return name.kind }
        return place.fits(directory.path, name) ? .append : .other
    }

    /// Whether rotation has given an append file this name.
    func isRotated(_ name: FileName) -> Bool {
        options.place == nil ? name.isRotatedName : name.anyStem != name
    }

    /// A file's path for people and the queue: relative to the spool, or absolute.
    func shown(_ path: FileName) -> String { options.place.map { "\($0.root)/\(path.text)" } ?? path.text }

    /// What the queue has kept of this reader's files, with their paths as they are used here.
    static func own(_ checkpoints: [Checkpoint], _ options: SpoolOptions) -> [Checkpoint] {
        guard let place = options.place else { return checkpoints.filter { !$0.path.hasPrefix("/") } }
        return checkpoints.compactMap { checkpoint in
            guard place.holds(checkpoint.path, root: place.root),
                let path = ReadPlace.part(of: checkpoint.path, below: place.root)
            else { return nil }
            var own = checkpoint
            own.path = path
            return own
        }
    }
}
