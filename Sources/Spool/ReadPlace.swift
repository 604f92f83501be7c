internal import CLinux
internal import EventLoops
internal import Glibc
internal import Model

/// Files that are read in place: never claimed, renamed, created, locked or removed.
public struct ReadPlace: Sendable, Hashable {
    /// Whose lines they are.
    public let app: String
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

/// The way to a place's directory, which links and mounts of others may change at any time.
extension ReadPlace {
    /// Why a directory that is there is not read.
    struct Refusal: Error {
        let reason: SpoolRefusal
        let owner: UInt32
        let advice: String
    }

    /// What is followed: links of root and of the agent's user; those of users, too; and all, into some mounts that may never answer.
    enum Reach: Equatable {
        case ownLinks, links
        case mounts([String])
    }

    /// Why it is not read; nil where it is, where nothing is there, and where only asking a file system could tell.
    public var problem: String? {
        guard case .failure(let refusal as Refusal) = Result(catching: { _ = try opened(.links) }) else { return nil }
        return refusal.advice
    }

    /// The paths of its files; nil where only asking a file system could tell. What is mounted below the root is not looked at.
    public var files: [String]? {
        var found: [String] = []
        func add(_ directory: borrowing Descriptor, _ path: FileName) {
            guard let stream = try? DirectoryStream(directory) else { return }
            while let name = try? stream.next()?.name {
                guard let status = try? FileSystem.status(stream.descriptor, name) else { continue }
                let below = path.bytes.isEmpty ? name : FileName(path.bytes + [UInt8(ascii: "/")] + name.bytes)
                if status.isRegular, fits(path, name) { found.append("\(root)/\(below.text)") }
                guard status.isDirectory, mayHold(below: below),
                    let inner = try? FileSystem.openDirectory(stream.descriptor, name)
                else { continue }
                add(inner, below)
            }
        }
        do {
            add(try opened(.links), FileName(""))
        } catch {
            return error is SystemError ? found : nil
        }
        return found.sorted()
    }

    /// The same files where the root leads by links that no user has made, as far as that is known without asking a file system.
    public var resolved: ReadPlace {
        guard let directory = try? opened(.ownLinks) else { return self }
        return at(directory)
    }

    private func at(_ directory: borrowing Descriptor) -> ReadPlace {
        ReadPlace(app: app, root: ReadPlace.path(of: directory), patterns: patterns)
    }

    /// Opens its directory, and compares it with what else is read.
    ///
    /// - Parameter known: the directory that is read now.
    /// - Returns: a descriptor that the caller closes; nil where it is the known one.
    /// - Throws: `SystemError`; `Refusal`; `Mount` of one that has to be waited for.
    func open(_ reach: Reach, unless known: SpoolFigures.Root?, _ options: SpoolOptions) throws -> Int32? {
        let directory = try opened(reach)
        let status = try FileSystem.status(directory)
        if let known, known.device == status.device, known.inode == status.inode { return nil }
        // Neither what is no directory, nor one in which nothing can be opened.
        _ = try FileSystem.openDirectory(directory.raw, FileName(""))
        let real = at(directory)
        if let conflict = conflict(at: real, own: options.own, places: options.places) {
            let advice = "the directory \(real.root), where this leads now, is not read: it \(conflict)"
            throw Refusal(reason: .symbolicLink, owner: status.owner, advice: advice)
        }
        return directory.release()
    }

    private func opened(_ reach: Reach) throws -> Descriptor {
        var links = 0
        return try ReadPlace.follow(root, from: AT_FDCWD, &links, reach)
    }

    /// Opens what a path leads to, name by name: what was looked at is what is opened.
    ///
    /// A link is followed if it is root's or the agent's, or if its owner has what it leads to: so nobody leads the agent to what is
    /// another's. In a user's directory it is that user's, who may have moved it there. On file systems of other machines, which may
    /// name any owner, it leads nowhere else.
    private static func follow(
        _ path: String, from start: Int32, _ links: inout Int, _ reach: Reach
    ) throws -> Descriptor {
        var directory = try Descriptor(checking: openat(start, path.hasPrefix("/") ? "/" : ".", way), "openat")
        for name in path.split(separator: "/") {
            let next = try step(String(name), from: directory, reach)
            guard let target = RealPath.target(of: "", in: next.raw) else {
                directory = next
                continue
            }
            links += 1
            guard links <= RealPath.mostLinks else { throw SystemError("openat", number: ELOOP) }
            let end = try follow(target, from: directory.raw, &links, reach)
            let (holder, link) = (try FileSystem.status(directory), try FileSystem.status(next))
            let found = try FileSystem.status(end)
            let owner = holder.belongs(toRootOr: geteuid()) ? link : holder
            guard owner.belongs(toRootOr: geteuid()) || reach != .ownLinks && found.owner == owner.owner,
                found.device == link.device || Mount(of: next.raw).isLocal
            else {
                let link = "\(self.path(of: directory))/\(name)"
                throw Refusal(
                    reason: .symbolicLink, owner: owner.owner,
                    advice: "the link \(link) is not followed, because a user may turn it and what it leads to is not "
                        + "that user's: name that directory in `read`")
            }
            directory = end
        }
        return directory
    }

    private static let way = CLINUX_O_PATH | O_NOFOLLOW | O_CLOEXEC

    /// Opens a name for its metadata; what is mounted there is judged before it is asked anything.
    private static func step(
        _ name: String, from directory: borrowing Descriptor, _ reach: Reach
    ) throws -> Descriptor {
        let known = if case .mounts(let known) = reach { known } else { [String]() }
        if known.isEmpty, let next = try? FileSystem.openPath(directory.raw, FileName(name)) { return next }
        // What is mounted only when it is entered (autofs) is, where that can be waited for.
        var raw = known.isEmpty ? -1 : openat(directory.raw, name, way | O_DIRECTORY)
        if raw < 0 { raw = openat(directory.raw, name, way) }
        let next = try Descriptor(checking: raw, "openat")
        let mount = Mount(of: next.raw)
        if let user = mount.provider, user != 0, user != geteuid() {
            let advice = "what a user has mounted at \(path(of: next)) is not read: name another directory in `read`"
            throw Refusal(reason: .otherFileSystem, owner: user, advice: advice)
        }
        guard mount.isLocal || known.contains(mount.number) else { throw mount }
        return next
    }

    /// The path of an open directory, without links. Without /proc nothing can be opened either.
    private static func path(of directory: borrowing Descriptor) -> String {
        RealPath.target(of: FileSystem.selfPath(directory.raw)) ?? ""
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
