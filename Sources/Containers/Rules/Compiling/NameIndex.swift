/// The tags that may fire, by an event's name. Most rules ask for a name, so that an event with another name
/// costs one look-up.
///
/// It never changes, so that it is read without locks and without counting references.
struct NameIndex: ~Copyable, @unchecked Sendable {
    // Unchecked: nothing is written after `init`, and the storage is its own.
    private let names: WantedMembers
    /// Numbers of the tags for each name, in order; the first entry is for names that no rule compares.
    private let tags: UnsafeMutableBufferPointer<UnsafeMutableBufferPointer<Int32>>

    /// An index of the tags for each name that rules ask for, and of those for any other name.
    init(_ tags: [[UInt8]: [Int]], others: [Int]) {
        let names = WantedMembers(tags.keys.map { [$0] })
        var numbers = [[Int]](repeating: others, count: names.count)
        for (name, tags) in tags { numbers[names.node(at: [name]) ?? 0] = tags }
        self.tags = .copy(of: numbers.map { .numbers($0) })
        self.names = names
    }

    deinit {
        for numbers in tags { numbers.deallocate() }
        tags.deallocate()
    }

    /// The tags that may fire, if no rule asks for a name; otherwise nil. Valid as long as the index.
    @inline(__always)
    var tagsForAnyName: UnsafeMutableBufferPointer<Int32>? { tags.count == 1 ? tags[0] : nil }

    /// The tags that may fire for an event of that name; valid as long as the index.
    @inline(__always)
    func tags(for name: UnsafeBufferPointer<UInt8>) -> UnsafeMutableBufferPointer<Int32> {
        tags[max(0, names.node(ofName: name))]
    }
}
