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

    private var depths: [FileName: Int] = [:]
    /// Links that are still to be looked at in this round.
    private var round: [Link] = []

    var isEmpty: Bool { depths.isEmpty }

    /// A link was found. Beyond the bound it is not looked at again until it changes.
    mutating func note(_ path: FileName, depth: Int) {
        guard depths[path] != nil || depths.count < LinkedDirectories.most else { return }
        depths[path] = depth
    }

    /// A link is gone.
    mutating func forget(_ path: FileName) { depths[path] = nil }

    /// A directory is gone, with its links.
    mutating func forget(in directory: FileName) {
        guard !depths.isEmpty else { return }
        depths = depths.filter { $0.key.parent != directory }
    }

    /// The links to look at next; a new round begins with all of them.
    mutating func takeToLook(atMost most: Int) -> (links: [Link], hasMore: Bool) {
        if round.isEmpty {
            round = depths.map { Link(path: $0.key, depth: $0.value) }
        }
        let next = round.suffix(most).filter { depths[$0.path] != nil }
        round.removeLast(min(most, round.count))
        return (next, !round.isEmpty)
    }
}
