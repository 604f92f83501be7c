/// Links to files that were followed, by the watched directories that they lead to: inotify reports what
/// happens to the file under its own name there. A value without I/O.
struct FollowedLinks {
    /// A link of the place.
    struct Link: Hashable {
        let directory: FileName
        let name: FileName
    }

    /// Most links: each takes memory, and a directory may have any number of them.
    static let most = 16_384

    /// Where each link leads; nil while it leads to nothing.
    private var targets: [Link: (watch: Int32, name: FileName)?] = [:]
    /// The links to each name in a watched directory.
    private var links: [Int32: [FileName: Set<Link>]] = [:]

    /// Links that are still to be looked at in this round.
    private var round: [Link] = []

    var isEmpty: Bool { targets.isEmpty }

    /// Whether changes of a watch are of interest.
    func isWatched(_ watch: Int32) -> Bool { links[watch] != nil }

    /// Whether a link is known that leads to nothing.
    func isDangling(_ link: Link) -> Bool { targets[link].map { $0 == nil } ?? false }

    func links(to name: FileName, in watch: Int32) -> Set<Link> { links[watch]?[name] ?? [] }

    /// Whether a link is known, or fits into the table. If not, its directory must not be watched for it:
    /// nothing would end that watch, and no change of the file would be found by it.
    func hasRoom(for link: Link) -> Bool { targets[link] != nil || targets.count < FollowedLinks.most }

    /// The links to look at next; a new round begins with all of them.
    mutating func takeToLook(atMost most: Int) -> (links: [Link], hasMore: Bool) {
        if round.isEmpty {
            round = Array(targets.keys)
        }
        let next = Array(round.suffix(most))
        round.removeLast(next.count)
        return (next, !round.isEmpty)
    }

    /// A link leads to a name in a watched directory, or to nothing.
    ///
    /// - Parameter watch: nil if the directory is not watched, or if the link leads to nothing.
    /// - Returns: the watch of the earlier directory, if no link leads there any more.
    mutating func found(_ link: Link, to name: FileName, in watch: Int32?) -> Int32? {
        if let known = targets[link] ?? nil, known.watch == watch, known.name == name { return nil }
        guard hasRoom(for: link) else { return nil }
        let ended = gone(link)
        targets[link] = .some(watch.map { ($0, name) })
        guard let watch else { return ended }
        links[watch, default: [:]][name, default: []].insert(link)
        return ended == watch ? nil : ended
    }

    /// A link is gone.
    ///
    /// - Returns: the watch of its directory, if no other link leads there.
    mutating func gone(_ link: Link) -> Int32? {
        guard let target = targets.removeValue(forKey: link) ?? nil else { return nil }
        links[target.watch]?[target.name]?.remove(link)
        if links[target.watch]?[target.name]?.isEmpty == true {
            links[target.watch]?[target.name] = nil
        }
        guard links[target.watch]?.isEmpty == true else { return nil }
        links[target.watch] = nil
        return target.watch
    }

    /// A directory of links is gone.
    ///
    /// - Returns: the watches of directories to which no link leads any more.
    mutating func gone(in directory: FileName) -> [Int32] {
        targets.keys.filter { $0.directory == directory }.compactMap { gone($0) }
    }

    /// The kernel has ended a watch: its directory is gone.
    mutating func ended(_ watch: Int32) {
        for link in (links.removeValue(forKey: watch) ?? [:]).values.joined() { targets[link] = .some(nil) }
    }
}
