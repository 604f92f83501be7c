internal import EventLoops
internal import Model

/// Files that are read in place: never claimed, renamed, created, locked or removed.
public struct ReadPlace: Sendable, Hashable {
    package let app: String
    /// The directory above the first part with a wildcard: an absolute path.
    public private(set) var root: String
    /// The patterns of its files' paths below the root.
    private(set) var patterns: [PathPattern]
    /// The patterns of files that are left out, of whole paths.
    private(set) var excluded: [PathPattern]
    /// Directories into which links are followed.
    private(set) var follow: [String] = []

    /// The places of an app's patterns, one for each directory. Patterns that can match the same file share a
    /// place, so that the file is read once. A directory and one inside it share a place too, because
    /// rotation moves files from one to the other (logrotate's `olddir`).
    ///
    /// - Parameter excluded: patterns of files to leave out; a pattern without a slash is compared with file
    ///   names in any directory.
    /// - Parameter follow: directories into which links are followed.
    /// - Returns: nil if a text is not a pattern (`mistake` says why).
    public static func of(
        app: String, _ patterns: [String], excluding excluded: [String] = [], following follow: [String] = []
    ) -> [ReadPlace]? {
        guard let paths = try? patterns.flatMap({ try PatternText.patterns($0) }),
            let exclusions = try? excluded.flatMap({ try exclusions($0) })
        else { return nil }
        var places: [ReadPlace] = []
        for path in paths {
            let parts = PathPattern(path: path).parts
            let first = min(parts.firstIndex { $0.literal == nil } ?? parts.count - 1, parts.count - 1)
            let root =
                "/"
                + parts[..<first].map { String(decoding: $0.literal ?? [], as: UTF8.self) }.joined(
                    separator: "/")
            let pattern = PathPattern(Array(parts[first...]))
            var place = ReadPlace(app: app, root: root, patterns: [pattern], excluded: exclusions)
            // Where two meet, the one root is the other's or lies above it.
            while let known = places.firstIndex(where: { $0.isBeside(place) || $0.meets(place) }) {
                place = places.remove(at: known).joined(with: place)
            }
            places.append(place)
        }
        for index in places.indices { places[index].follow = follow }
        return places
    }

    /// The file of a path, whatever characters are in it.
    public static func of(file path: String) -> ReadPlace? { of(app: "", [NamePattern.quoted(path)])?.first }

    /// What is wrong with a text that is not a pattern; nil for a pattern.
    ///
    /// - Parameter isExclusion: whether it names files to leave out.
    public static func mistake(_ text: String, isExclusion: Bool = false) -> String? {
        do throws(PatternText.Mistake) {
            _ = if isExclusion { try exclusions(text).count } else { try PatternText.patterns(text).count }
            return nil
        } catch {
            return error.message
        }
    }

    private static func exclusions(_ text: String) throws(PatternText.Mistake) -> [PathPattern] {
        let isName = !text.isEmpty && !text.utf8.contains(UInt8(ascii: "/"))
        return try PatternText.patterns(isName ? "/**/\(text)" : text).map {
            PathPattern(path: $0, isForHidden: true)
        }
    }

    /// A pattern that names only files that are never read, packed ones; nil if each pattern may match other
    /// files too.
    public var neverRead: String? {
        patterns.first { pattern in ReadPlace.unreadable.contains { pattern.last.text.hasSuffix($0) } }.map {
            "\(root)/\($0.text)"
        }
    }

    /// Whether the roots are one directory, or one is in the other: what is listed then is listed anyway.
    private func isBeside(_ other: ReadPlace) -> Bool {
        func parent(_ path: String) -> Substring { path[..<(path.lastIndex(of: "/") ?? path.startIndex)] }
        return root == other.root || root == parent(other.root) || other.root == parent(root)
    }

    /// Both places as one, below the root that lies above the other's.
    private func joined(with other: ReadPlace) -> ReadPlace {
        guard root.utf8.count <= other.root.utf8.count else { return other.joined(with: self) }
        let between = ReadPlace.names(in: other.root).dropFirst(ReadPlace.names(in: root).count).map(
            ReadPlace.part)
        var joined = self
        joined.patterns += other.patterns.map { PathPattern(between + $0.parts) }
        return joined
    }

    /// The same files where the root leads: what is left out below it is left out there.
    func moved(to root: String) -> ReadPlace {
        var moved = self
        moved.root = root
        moved.follow = follow.map { (try? ReadPlace.real($0)) ?? $0 }
        let old = ReadPlace.names(in: self.root)
        let new = ReadPlace.names(in: root).map(ReadPlace.part)
        moved.excluded = excluded.map { pattern in
            guard pattern.parts.count > old.count, zip(pattern.parts, old).allSatisfy({ $0.literal == $1 })
            else {
                return pattern
            }
            return PathPattern(new + pattern.parts.dropFirst(old.count), isForHidden: true)
        }
        return moved
    }

    private static func names(in path: String) -> [[UInt8]] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { Array($0) }
    }

    private static func part(_ name: [UInt8]) -> PathPattern.Part {
        .name(NamePattern(literal: String(decoding: name, as: UTF8.self)))
    }

    /// Why the place cannot be read where its root leads: some of its files are the agent's own, or another
    /// place's.
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
        let excluded = self.excluded + other.excluded
        func remaining(_ patterns: [PathPattern]) -> [PathPattern] {
            patterns.filter { pattern in !excluded.contains { $0.covers(pattern) } }
        }
        let mine = remaining(whole)
        let theirs = remaining(other.whole)
        // Links of both may lead into one directory: which files they name, their names say.
        return mine.contains { own in (theirs + other.followedPatterns).contains { own.meets($0) } }
            || theirs.contains { their in followedPatterns.contains { their.meets($0) } }
    }

    /// Whether a file of it may be in that directory, or below it. Links that lead to the directory are
    /// followed.
    public func reaches(into directory: String) -> Bool {
        let names = ReadPlace.names(in: DistantMount.realPath(of: directory))
        guard !excluded.contains(where: { $0.isForAllBelow($0.advanced($0.start, over: names)) }) else {
            return false
        }
        return (whole + followedPatterns).contains { $0.advanced($0.start, over: names).mayGoOn }
    }

    /// Whether a path is that of one of its files, before or after rotation.
    ///
    /// - Parameter root: the place's own, or where that leads.
    public func holds(_ path: String, root: String) -> Bool {
        let parts = ReadPlace.part(of: path, below: root)?.split(separator: "/") ?? []
        guard let last = parts.last.map({ FileName(String($0)) }) else { return false }
        let directory = FileName(parts.dropLast().joined(separator: "/"))
        return fits(directory, last) || archive(directory, last) != nil
    }

    /// The part of a path below a directory; nil if the path is not below it.
    static func part(of path: String, below directory: String) -> String? {
        guard path.hasPrefix(directory + "/") else { return nil }
        return String(decoding: path.utf8.dropFirst(directory.utf8.count + 1), as: UTF8.self)
    }

    /// The patterns of its files' whole paths.
    private var whole: [PathPattern] { patterns.map { whole($0) } }

    /// The pattern of whole paths for one below the root.
    func whole(_ pattern: PathPattern) -> PathPattern {
        PathPattern(ReadPlace.names(in: root).map(ReadPlace.part) + pattern.parts)
    }

    /// Directories directly below the root that patterns name literally. They count as part of the root,
    /// because rotation may move or copy files into them.
    var joinedTops: Set<[UInt8]> {
        Set(patterns.compactMap { $0.parts.count > 1 ? $0.parts[0].literal : nil })
    }

    /// Whether a file of it may be in a directory below its root, or further down.
    func mayHold(below path: FileName) -> Bool {
        let names = ReadPlace.names(in: path)
        guard !leavesOut({ $0.isForAllBelow($1) }, below: names) else { return false }
        return patterns.contains { $0.advanced($0.start, over: names).mayGoOn }
    }

    /// Whether a file belongs to the place, by its name or by the name that it had before rotation.
    func fits(_ path: FileName, _ name: FileName) -> Bool {
        guard ReadPlace.mayBeRead(name), name.unpacked == nil else { return false }
        let directories = ReadPlace.names(in: path)
        return patterns.contains { ReadPlace.fits($0, $0.advanced($0.start, over: directories), name) }
            && !leavesOut({ ReadPlace.fits($0, $1, name) }, below: directories)
    }

    /// The compression of an archive of the place: of a file that a pattern names, or that rotation has
    /// compressed; nil for other files.
    func archive(_ path: FileName, _ name: FileName) -> DropFormat? {
        guard let (plain, format) = name.unpacked, ReadPlace.mayBeRead(name) else { return nil }
        let directories = ReadPlace.names(in: path)
        guard !leavesOut({ ReadPlace.fits($0, $1, name) }, below: directories) else { return nil }
        return fits(path, plain) || !named(path, name).isEmpty ? format : nil
    }

    /// The patterns that are those of compressed files, and that one of them fits.
    func named(_ path: FileName, _ name: FileName) -> [PathPattern] {
        patterns(of: path, name).filter { pattern in
            [".gz", ".zst"].contains { pattern.last.text.hasSuffix($0) }
        }
    }

    private static func mayBeRead(_ name: FileName) -> Bool {
        !name.isUnfinished && !unreadable.contains { name.hasSuffix($0) }
    }

    /// The patterns that a file in a directory below the root fits.
    func patterns(of path: FileName, _ name: FileName) -> [PathPattern] {
        let directories = ReadPlace.names(in: path)
        return patterns.filter { ReadPlace.fits($0, $0.advanced($0.start, over: directories), name) }
    }

    /// Whether a name fits, by itself or as it was before rotation, where the directories were passed.
    private static func fits(_ pattern: PathPattern, _ progress: PathPattern.Progress, _ name: FileName)
        -> Bool
    {
        guard progress.mayGoOn else { return false }
        if pattern.advanced(progress, over: name.bytes).isWhole { return true }
        let stem = name.anyStem
        return stem != name && pattern.advanced(progress, over: stem.bytes).isWhole
    }

    /// Whether a pattern of files to leave out meets a condition in a directory below the root.
    private func leavesOut(
        _ condition: (PathPattern, PathPattern.Progress) -> Bool, below directories: [[UInt8]]
    ) -> Bool {
        guard !excluded.isEmpty else { return false }
        let names = ReadPlace.names(in: root) + directories
        return excluded.contains { condition($0, $0.advanced($0.start, over: names)) }
    }

    private static func names(in path: FileName) -> [[UInt8]] {
        path.bytes.split(separator: UInt8(ascii: "/")).map { Array($0) }
    }

    /// Files that hold no lines as they are.
    private static let unreadable = [".xz", ".bz2", ".swp", "~"]
}

extension SpoolOptions {
    /// Whether a name is ignored because it is hidden. In a place that is only read, its patterns decide
    /// about hidden names, too.
    func ignores(_ name: FileName) -> Bool { place == nil && name.isHidden }

    /// The kind of a file by its name. In a place that is only read, all matching files are append files.
    func kind(of name: FileName, in directory: SpoolDirectory) -> FileKind {
        guard let place else { return name.kind }
        if place.fits(directory.path, name) { return .append }
        return place.archive(directory.path, name).map { .drop($0) } ?? .other
    }

    /// Whether rotation has given an append file this name.
    func isRotated(_ name: FileName) -> Bool {
        place == nil ? name.isRotatedName : name.anyStem != name
    }

    /// A file's path for people and the queue: relative to the spool, or absolute.
    func shown(_ path: FileName) -> String {
        place.map { path.bytes.isEmpty ? $0.root : "\($0.root)/\(path.text)" } ?? path.text
    }

    /// Checkpoints of this reader's files among those that the queue has, with their paths as used here.
    func ownCheckpoints(among kept: [Checkpoint]) -> [Checkpoint] {
        let checkpoints = kept.map(\.restoringPath)
        guard let place else {
            return checkpoints.filter { !$0.path.hasPrefix("/") }
        }
        let places = Array(self.places.keys) + [place]
        return checkpoints.compactMap { checkpoint in
            // A name that fits no place is an intermediate name of rotation. The original name then shows the
            // place of the file.
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
