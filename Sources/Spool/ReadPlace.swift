internal import EventLoops
internal import Model

/// Files that are read in place: never claimed, renamed, created, locked or removed.
public struct ReadPlace: Sendable, Hashable {
    package let app: String
    /// The directory above the first part with a `*`: an absolute path.
    public private(set) var root: String
    /// The parts below it, of each pattern; a `*` fits any run of bytes within a part, but no full stop at its beginning.
    public private(set) var patterns: [[String]]

    /// The places of an app's patterns, one for each directory. Patterns that meet belong to one place, so that a file is read once;
    /// and so do a directory and one in it, because rotation moves files there (logrotate's `olddir`).
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
            var place = ReadPlace(app: app, root: root, patterns: [Array(parts[first...])])
            // Where two meet, the one root is the other's or lies above it.
            while let known = places.firstIndex(where: { $0.isBeside(place) || $0.meets(place) }) {
                place = places.remove(at: known).joined(with: place)
            }
            places.append(place)
        }
        return places
    }

    /// A pattern that names only files that are never read, packed ones; nil where each may name others.
    public var neverRead: String? {
        patterns.first { pattern in ReadPlace.packed.contains { pattern.last?.hasSuffix($0) == true } }.map {
            "\(root)/\($0.joined(separator: "/"))"
        }
    }

    /// Whether the roots are one directory, or one is in the other: what is listed then is listed anyway.
    private func isBeside(_ other: ReadPlace) -> Bool {
        func parent(_ path: String) -> Substring { path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }
        return root == other.root || root == parent(other.root) || other.root == parent(root)
    }

    /// Both as one place, below the root that lies above the other's.
    private func joined(with other: ReadPlace) -> ReadPlace {
        guard root.utf8.count <= other.root.utf8.count else { return other.joined(with: self) }
        let between = other.root.split(separator: "/").dropFirst(root.split(separator: "/").count).map { String($0) }
        return ReadPlace(app: app, root: root, patterns: patterns + other.patterns.map { between + $0 })
    }

    /// Why it cannot be read where its root leads: some of its files are the agent's own, or another place's.
    ///
    /// - Parameter places: all places, and what each is where its root leads.
    public func conflict(at real: ReadPlace, own: [String], places: [ReadPlace: ReadPlace]) -> String? {
        if let own = own.first(where: { real.reaches(into: $0) }) {
            return "reaches into \(own), which is the agent's own"
        }
        guard let other = places.first(where: { $0 != self && $1.meets(real) })?.key else { return nil }
        let whose = other.app == app ? "its pattern below \(other.root)" : "that of \(other.app)"
        return "overlaps \(whose): a file is read once"
    }

    /// Whether a file of the one may be a file of the other.
    public func meets(_ other: ReadPlace) -> Bool {
        let (mine, theirs) = (whole, other.whole)
        return mine.contains { mine in
            theirs.contains { theirs in
                mine.count == theirs.count
                    && zip(mine.dropLast(), theirs.dropLast()).allSatisfy { ReadPlace.overlap($0, $1) }
                    && zip(mine.suffix(1), theirs.suffix(1)).allSatisfy { mine, theirs in
                        // A file is also known by the name that it had before rotation.
                        [mine, FileName(mine).anyStem.text].contains { mine in
                            [theirs, FileName(theirs).anyStem.text].contains { ReadPlace.overlap(mine, $0) }
                        }
                    }
            }
        }
    }

    /// Whether a name can fit both parts.
    static func overlap(_ one: String, _ other: String) -> Bool {
        let (one, other, star) = (Array(one.utf8), Array(other.utf8), UInt8(ascii: "*"))
        if one.first == star && other.first == UInt8(ascii: ".") { return false }
        if other.first == star && one.first == UInt8(ascii: ".") { return false }
        // By the beginnings of the other part whether a name can fit both it and what there was of the first part so far.
        var fits = [true] + other.indices.map { index in other[...index].allSatisfy { $0 == star } }
        for byte in one {
            var next = [byte == star && fits[0]]
            for (index, otherByte) in other.enumerated() {
                let isOpen = byte == star && next[index] || otherByte == star && fits[index + 1]
                let isEmpty = byte == star && fits[index + 1] || otherByte == star && next[index]
                next.append(isOpen || isEmpty || byte == otherByte && fits[index])
            }
            fits = next
        }
        return fits[other.count]
    }

    /// Whether a file of it may be in that directory, or below it. Links that lead to the directory are followed.
    public func reaches(into directory: String) -> Bool {
        let parts = RealPath.of(directory).split(separator: "/").map { String($0) }
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

    /// The directories that patterns name in its own: rotation moves files there, and a copy is known wherever it is.
    var joinedTops: Set<[UInt8]> {
        Set(patterns.filter { $0.count > 1 && !$0[0].contains("*") }.map { Array($0[0].utf8) })
    }

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
    func shown(_ path: FileName) -> String {
        options.place.map { path.bytes.isEmpty ? $0.root : "\($0.root)/\(path.text)" } ?? path.text
    }

    /// What the queue has kept of this reader's files, with their paths as they are used here.
    static func own(_ checkpoints: [Checkpoint], _ options: SpoolOptions) -> [Checkpoint] {
        guard let place = options.place else { return checkpoints.filter { !$0.path.hasPrefix("/") } }
        let places = Array(options.places.keys) + [place]
        return checkpoints.compactMap { checkpoint in
            // A name that is nobody's is one on the way between two: the one that the file was written under says whose it is.
            var name = checkpoint.path
            if !places.contains(where: { $0.holds(name, root: $0.root) }) {
                let origin = FileTrace(checkpoint.state)?.origin ?? checkpoint.name.stem
                name = FileName(name).parent.text + "/" + origin.text
            }
            guard place.holds(name, root: place.root),
                let path = ReadPlace.part(of: checkpoint.path, below: place.root)
            else { return nil }
            var own = checkpoint
            own.path = path
            return own
        }
    }
}
