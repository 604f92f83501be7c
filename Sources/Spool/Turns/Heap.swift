/// A binary heap: items ordered by their keys, the least first.
struct Heap<Key: Comparable, Item> {
    private var entries: [(key: Key, item: Item)] = []

    init() {}

    /// Sorted entries are a heap.
    init(_ entries: some Sequence<(key: Key, item: Item)>) {
        self.entries = entries.sorted { $0.key < $1.key }
    }

    var first: (key: Key, item: Item)? { entries.first }

    var count: Int { entries.count }

    mutating func add(_ item: Item, _ key: Key) {
        entries.append((key, item))
        var index = entries.count - 1
        while index > 0, entries[index].key < entries[(index - 1) / 2].key {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    mutating func popFirst() -> (key: Key, item: Item)? {
        guard let first = entries.first else { return nil }
        entries.swapAt(0, entries.count - 1)
        entries.removeLast()
        sink()
        return first
    }

    /// Gives the first item another key, which must not be less than the old one.
    mutating func moveFirst(to key: Key) {
        guard !entries.isEmpty else { return }
        entries[0].key = key
        sink()
    }

    /// Moves the first item down to the level of its key.
    private mutating func sink() {
        var index = 0
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2]
            where child < entries.count && entries[child].key < entries[least].key { least = child }
            guard least != index else { return }
            entries.swapAt(index, least)
            index = least
        }
    }
}
