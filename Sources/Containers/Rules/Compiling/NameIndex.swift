/// The tags that may fire, by an event's name: most rules ask for one, and any other name then costs one look-up.
///
/// It never changes, so that it is read without locks and without counting references.
struct NameIndex: ~Copyable, @unchecked Sendable {
    // Nothing is written after init, and the storage is its own.
    private let names: WantedMembers
    /// For each of the names the tags, by their places, in order; first those for a name that is in no rule.
    private let tags: UnsafeMutableBufferPointer<UnsafeMutableBufferPointer<Int32>>

    /// The tags that may fire for each name that rules ask for, and those for any other name.
    init(_ tags: [[UInt8]: [Int]], others: [Int]) {
        let names = WantedMembers(tags.keys.map { [$0] })
        var places = [[Int]](repeating: others, count: names.count)
        for (name, tags) in tags { places[names.node(at: [name]) ?? 0] = tags }
        self.tags = .copy(of: places.map { .places($0) })
        self.names = names
    }

    deinit {
        for places in tags { places.deallocate() }
        tags.deallocate()
    }

    /// The tags that may fire for an event of that name; valid as long as this.
    @inline(__always)
    func tags(for name: UnsafeBufferPointer<UInt8>) -> UnsafeMutableBufferPointer<Int32> {
        tags[max(0, names.node(ofName: name))]
    }
}
