/// What people should fix, while it is so. Bounded by holder: whoever has most gives way to those who have less, so that
/// nobody's thousand hide another's one.
struct Complaints {
    /// How many are remembered, of all.
    static let most = 1024
    private static let mostShown = 16

    private var all: [FileName: (complaint: SpoolComplaint, holder: Holder)] = [:]
    private var held: [Holder: Set<FileName>] = [:]

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    subscript(path: FileName) -> SpoolComplaint? { all[path]?.complaint }

    /// Some of them: of each holder one, then of each a second one.
    var shown: [SpoolComplaint] {
        var lists = held.values.map { $0.sorted() }
        lists.sort { ($0.count, $0[0]) < ($1.count, $1[0]) }
        var shown: [SpoolComplaint] = []
        for round in 0..<Complaints.mostShown where shown.count < Complaints.mostShown {
            shown += lists.filter { $0.count > round }.compactMap { all[$0[round]]?.complaint }
        }
        return Array(shown.prefix(Complaints.mostShown))
    }

    func hasAny(below path: FileName) -> Bool {
        let start = path.bytes + [UInt8(ascii: "/")]
        return all.keys.contains { $0.bytes.starts(with: start) }
    }

    /// False: there are as many as are remembered, and its holder has as many as others.
    mutating func add(_ complaint: SpoolComplaint, at path: FileName) -> Bool {
        let holder = Holder(of: path.bytes, owner: complaint.owner, joinedTops: []).pooled
        if all.count >= Complaints.most {
            guard let largest = held.max(by: { $0.value.count < $1.value.count }),
                largest.value.count > 1 + (held[holder]?.count ?? 0), let victim = largest.value.first
            else { return false }
            remove(victim)
        }
        all[path] = (complaint, holder)
        held[holder, default: []].insert(path)
        return true
    }

    mutating func remove(_ path: FileName) {
        guard let holder = all.removeValue(forKey: path)?.holder else { return }
        held[holder]?.remove(path)
        if held[holder]?.isEmpty == true { held[holder] = nil }
    }
}
