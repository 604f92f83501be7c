internal import Model

/// Members in which something may be found, in the order in which they are looked at. The scanner finds the first part of each
/// path; what is below it is looked for only where it is asked for.
struct Candidates {
    struct Path {
        let name: String
        /// The scanner's place of the member.
        let slot: Int
        let below: [[UInt8]]
        /// What a number in it means as a severity.
        let scale: SeverityScale
    }

    private(set) var paths: [Path] = []
    /// The members that are the beginning of one.
    private(set) var mask: UInt64 = 0

    static let none = Candidates([], WatchedNames([]))

    /// Paths with dots, without those that tags hide. A member whose own name has the dots comes first.
    init(_ names: [String], _ watched: WatchedNames, hiding: HiddenPaths? = nil) {
        for name in names {
            let parts = name.utf8.split(separator: UInt8(ascii: ".")).map { Array($0) }
            for whole in parts.count > 1 ? [true, false] : [true] {
                let path = whole ? [Array(name.utf8)] : parts
                guard let slot = watched.slot(of: path[0]), hiding?.hides(path) != true else { continue }
                paths.append(
                    Path(name: name, slot: slot, below: Array(path.dropFirst()), scale: Severity.scale(of: name)))
                mask |= 1 << UInt64(slot)
            }
        }
    }
}

/// The names of members that are looked for beside those of `MemberName`: each has a place in the scanner.
struct WatchedNames {
    /// How many there may be: the scanner has a bit for each.
    static let most = 64 - MemberName.allCases.count
    private(set) var names: [[UInt8]] = []

    /// The names of all the paths that some app's settings have. What is beyond `most` is not found; the configuration refuses it.
    init(_ paths: some Sequence<String>) {
        let known = Set(MemberName.allCases.map(\.spelling))
        var seen: Set<[UInt8]> = []
        for path in paths {
            for name in Set([Array(path.utf8), Array(path.utf8.prefix { $0 != UInt8(ascii: ".") })])
            where !name.isEmpty && !known.contains(name) && names.count < WatchedNames.most
                && seen.insert(name).inserted
            {
                self.names.append(name)
            }
        }
    }

    func slot(of name: [UInt8]) -> Int? {
        if let own = MemberName.allCases.first(where: { $0.spelling == name && !name.isEmpty }) { return own.rawValue }
        return names.firstIndex(of: name).map { $0 + MemberName.allCases.count }
    }
}
