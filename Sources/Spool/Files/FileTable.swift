/// What a table finds files by: a property of theirs.
protocol FileKey: Hashable {
    init(of file: AppendFile)
}

extension FileID: FileKey {
    init(of file: AppendFile) { self = file.id }
}

extension FileName: FileKey {
    init(of file: AppendFile) { self = file.name }
}

/// Append files, found by a key that they hold themselves: some twelve bytes a file, where a dictionary, which holds the
/// key too, would take five times as many. With a million files that counts.
///
/// A file's key must not change while it is in the table.
struct FileTable<Key: FileKey> {
    /// A power of two of places; a file is at the place that its key's hash tells, or at the next that was free.
    private var places: [AppendFile?] = []
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    /// The files, in no order. What is done to the table meanwhile does not change them.
    var values: some Sequence<AppendFile> { places.lazy.compactMap { $0 } }

    subscript(key: Key) -> AppendFile? {
        get {
            guard count > 0 else { return nil }
            return places[place(of: key)]
        }
        set {
            guard let newValue else { return remove(key) }
            // At most four of five places are taken.
            if (count + 1) * 5 > places.count * 4 { grow() }
            let place = place(of: key)
            if places[place] == nil { count += 1 }
            places[place] = newValue
        }
    }

    /// Where the file of a key is, or the free place where it would be.
    private func place(of key: Key) -> Int {
        let mask = places.count - 1
        var place = key.hashValue & mask
        while let file = places[place], Key(of: file) != key { place = (place + 1) & mask }
        return place
    }

    private mutating func remove(_ key: Key) {
        guard count > 0 else { return }
        var gap = place(of: key)
        guard places[gap] != nil else { return }
        places[gap] = nil
        count -= 1
        // Those behind it that are not where their hash tells move up: a search ends at the first free place.
        let mask = places.count - 1
        var next = (gap + 1) & mask
        while let file = places[next] {
            let home = Key(of: file).hashValue & mask
            if (next - home) & mask >= (next - gap) & mask {
                places[gap] = file
                places[next] = nil
                gap = next
            }
            next = (next + 1) & mask
        }
        if count == 0 { places = [] }
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: nil, count: max(4, old.count * 2))
        for case let file? in old { places[place(of: Key(of: file))] = file }
    }
}
