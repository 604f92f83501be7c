/// Links of a place that lead to directories, or may do so later, by path.
///
/// No event reports that a link in the middle is turned, or that a missing directory comes, so each is looked
/// at from time to time. A value without I/O.
struct LinkedDirectories {
    /// A link, and the number of levels below the root.
    struct Link: Hashable {
        let path: FileName
        let depth: Int
    }

    /// Most links: each takes memory, and a directory may have any number of them.
    static let most = 4096

    /// The depths of the links in each directory, by the link's path. Grouped by
    /// directory: a tree that is removed goes directory by directory, and none searches the links of all
    /// others.
    private var depths: [FileName: [FileName: Int]] = [:]
    private var count = 0
    /// Links that are still to be looked at in this round; some may be gone by now.
    private var round: [Link] = []

    var isEmpty: Bool { depths.isEmpty }

    /// A link was found. Beyond the bound it is not looked at again until it changes.
    mutating func note(_ path: FileName, depth: Int) {
        let isKnown = contains(path)
        guard isKnown || count < LinkedDirectories.most else { return }
        depths[path.parent, default: [:]][path] = depth
        count += isKnown ? 0 : 1
    }

    /// A link is gone.
    mutating func forget(_ path: FileName) {
        guard !depths.isEmpty else { return }
        let directory = path.parent
        guard depths[directory]?.removeValue(forKey: path) != nil else { return }
        count -= 1
        if depths[directory]?.isEmpty == true {
            depths[directory] = nil
        }
    }

    /// A directory is gone, with its links.
    mutating func forget(in directory: FileName) {
        count -= depths.removeValue(forKey: directory)?.count ?? 0
    }

    private func contains(_ path: FileName) -> Bool { depths[path.parent]?[path] != nil }

    /// The links to look at next; a new round begins with all of them.
    mutating func takeToLook(atMost most: Int) -> (links: [Link], hasMore: Bool) {
        if round.isEmpty {
            round = depths.values.flatMap { $0.map { Link(path: $0.key, depth: $0.value) } }
        }
        let next = round.suffix(most).filter { contains($0.path) }
        round.removeLast(min(most, round.count))
        return (next, !round.isEmpty)
    }
}
