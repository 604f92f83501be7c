/// Watched names for which `KnownNames` has no room: an open-addressed table of any size.
///
/// A member that is not watched is compared with one or two entries, and nothing is allocated for it. So a
/// configuration with a hundred names costs other members the same as one with ten.
///
/// A value whose memory is that of `KnownNames`.
struct LateNames {
    /// Table whose size is a power of two and at least twice the number of names, so that probing soon meets
    /// a free entry.
    private let entries: UnsafeMutablePointer<KnownNames.Entry>
    private let mask: Int
    private let names: [[UInt8]]
    let isEmpty: Bool

    /// - Parameters:
    ///   - names: all names.
    ///   - first: slot of the first late name; those before it are not in this table.
    init(_ names: [[UInt8]], from first: Int) {
        self.names = names
        isEmpty = names.count <= first
        var capacity = 1
        while capacity < 2 * (names.count - min(first, names.count)) { capacity *= 2 }
        mask = capacity - 1
        entries = .allocate(capacity: capacity)
        entries.initialize(repeating: KnownNames.Entry(), count: capacity)
        for slot in names.indices.dropFirst(first) where !names[slot].isEmpty {
            let entry = KnownNames.Entry(names[slot], slot: slot)
            var index = LateNames.hash(entry.word, entry.last, entry.length) & mask
            while entries[index].slot >= 0 { index = (index + 1) & mask }
            entries[index] = entry
        }
    }

    /// Frees the table; the value must not be used afterwards.
    func deallocate() { entries.deallocate() }

    /// The slot of a name; -1 for any other name.
    ///
    /// - Parameters:
    ///   - word: first eight bytes of the name, as `KnownNames.Entry.word` has them.
    ///   - last: its last eight bytes, as `KnownNames.Entry.last` has them.
    @inline(never)
    func slot(of name: UnsafeBufferPointer<UInt8>, _ word: UInt64, _ last: UInt64) -> Int {
        guard !isEmpty else { return -1 }
        var index = LateNames.hash(word, last, name.count) & mask
        while entries[index].slot >= 0 {
            let entry = entries[index]
            // Names of more than sixteen bytes may differ between their first and last eight.
            if entry.word == word, entry.last == last, entry.length == name.count,
                name.count <= 16 || name.elementsEqual(names[entry.slot])
            {
                return entry.slot
            }
            index = (index + 1) & mask
        }
        return -1
    }

    /// Hash of a name by the values that an entry has of it.
    private static func hash(_ word: UInt64, _ last: UInt64, _ length: Int) -> Int {
        let mixed =
            (word ^ (last &* 0xD6E8_FEB8_6659_FD93) ^ UInt64(truncatingIfNeeded: length))
            &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: mixed &>> 32)
    }
}
