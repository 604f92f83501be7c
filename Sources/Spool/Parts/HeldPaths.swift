/// Paths about which there is something to say, while it is so. Bounded by holder: whoever has most gives way to those who have less,
/// so that nobody's thousand hide another's one.
struct HeldPaths<Value> {
    /// How many are remembered, of all.
    static var most: Int { 1024 }

    private var all: [FileName: (value: Value, holder: Holder)] = [:]
    private var held: [Holder: Set<FileName>] = [:]
    private var isChanged = false

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    subscript(path: FileName) -> Value? { all[path]?.value }

    /// Some of them, if they changed since that was asked last: one of each holder, of whoever has fewest first; then a second of each.
    mutating func takeChanged(atMost most: Int) -> [(path: FileName, value: Value)]? {
        guard isChanged else { return nil }
        isChanged = false
        var lists = held.values.map { $0.sorted() }
        lists.sort { ($0.count, $0[0]) < ($1.count, $1[0]) }
        var shown: [(path: FileName, value: Value)] = []
        for round in 0..<most where shown.count < most {
            shown += lists.filter { $0.count > round }.compactMap { list in
                all[list[round]].map { (list[round], $0.value) }
            }
        }
        return Array(shown.prefix(most))
    }

    func paths(below path: FileName) -> [FileName] {
        let start = path.bytes + [UInt8(ascii: "/")]
        return all.keys.filter { $0.bytes.starts(with: start) }
    }

    /// False: there are as many as are remembered, and its holder has as many as others.
    ///
    /// - Parameter owner: whose it is, as far as is known.
    mutating func add(_ value: Value, at path: FileName, of owner: UInt32?) -> Bool {
        let holder = Holder(of: path.bytes, owner: owner, joinedTops: []).pooled
        if all.count >= HeldPaths.most, all[path] == nil {
            guard let largest = held.max(by: { $0.value.count < $1.value.count }),
                largest.value.count > 1 + (held[holder]?.count ?? 0), let victim = largest.value.first
            else { return false }
            remove(victim)
        }
        remove(path)
        all[path] = (value, holder)
        held[holder, default: []].insert(path)
        isChanged = true
        return true
    }

    mutating func remove(_ path: FileName) {
        guard let holder = all.removeValue(forKey: path)?.holder else { return }
        held[holder]?.remove(path)
        if held[holder]?.isEmpty == true { held[holder] = nil }
        isChanged = true
    }

    mutating func removeAll(below path: FileName) { for path in paths(below: path) { remove(path) } }

    /// What is said of them is to be shown anew.
    mutating func touch() { isChanged = true }
}
