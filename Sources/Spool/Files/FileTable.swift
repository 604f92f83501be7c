/// A key by which a table finds files; a property of the file.
protocol FileKey: Hashable {
    init(of file: AppendFile)
}

extension FileID: FileKey {
    init(of file: AppendFile) { self = file.id }
}

extension FileName: FileKey {
    init(of file: AppendFile) { self = file.name }
}

/// A hash table of append files by a key that the file holds itself: about 12 bytes a file. A dictionary
/// would store the key too and take five times as much, which matters with a million files.
///
/// Open addressing with linear probing. The key of a file must not change while the file is in the table, or
/// the file cannot be found any more.
struct FileTable<Key: FileKey> {
    /// The slots; their number is a power of two. A file is in the slot of its key's hash, or in the next
    /// free one.
    private var slots: [AppendFile?] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The files, in no order. The sequence is a copy: the table may be changed meanwhile.
    var values: some Sequence<AppendFile> { slots.lazy.compactMap { $0 } }

    subscript(key: Key) -> AppendFile? {
        get {
            guard count > 0 else { return nil }
            return slots[slot(of: key)]
        }
        set {
            guard let newValue else { return remove(key) }
            // At most four of five slots are used; with more, searches become long.
            if (count + 1) * 5 > slots.count * 4 {
                grow()
            }
            let index = slot(of: key)
            if slots[index] == nil {
                count += 1
            }
            slots[index] = newValue
        }
    }

    /// The slot of the file with a key, or the free slot where it would be.
    private func slot(of key: Key) -> Int {
        assert(count < slots.count, "a search in a full table does not end")
        let mask = slots.count - 1
        var index = key.hashValue & mask
        while let file = slots[index], Key(of: file) != key { index = (index + 1) & mask }
        return index
    }

    /// Removes a file, and closes the gap: a search ends at the first free slot.
    private mutating func remove(_ key: Key) {
        guard count > 0 else { return }
        var gap = slot(of: key)
        guard slots[gap] != nil else { return }
        slots[gap] = nil
        count -= 1
        // Files behind the gap move into it unless that would put them before the slot of their hash.
        let mask = slots.count - 1
        var next = (gap + 1) & mask
        while let file = slots[next] {
            let home = Key(of: file).hashValue & mask
            if (next - home) & mask >= (next - gap) & mask {
                slots[gap] = file
                slots[next] = nil
                gap = next
            }
            next = (next + 1) & mask
        }
        if count == 0 {
            slots = []
        }
    }

    /// Doubles the slots, and places all files again by the longer part of their hashes.
    private mutating func grow() {
        let old = slots
        slots = Array(repeating: nil, count: max(4, old.count * 2))
        for case let file? in old { slots[slot(of: Key(of: file))] = file }
    }
}
