/// Paths with a message each, for as long as the message is true. The table is bounded, and beyond the bound
/// the holder with the most paths gives way: a thousand bad files of one user must not hide the single one of
/// another.
struct HeldPaths<Value> {
    /// Most paths of all holders together.
    static var most: Int { 1024 }

    private var all: [FileName: (value: Value, holder: Holder)] = [:]
    /// The same paths by holder; finds the holder with the most.
    private var held: [Holder: Set<FileName>] = [:]
    /// Whether the table has changed since `takeChanged` was called last.
    private var isChanged = false

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    subscript(path: FileName) -> Value? { all[path]?.value }

    /// Some of the paths, if the table has changed since the last call: one of each holder, beginning with
    /// the holder that has the fewest, then a second of each, and so on.
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

    /// Adds a path. False if the table is full and the path's holder has no fewer paths than the others.
    ///
    /// - Parameter owner: the owner of the file; nil if unknown.
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
        if held[holder]?.isEmpty == true {
            held[holder] = nil
        }
        isChanged = true
    }

    mutating func removeAll(below path: FileName) { for path in paths(below: path) { remove(path) } }

    /// Marks the table as changed, because the messages are worded differently now.
    mutating func touch() { isChanged = true }
}
